"""Reads word vectors for a report, and what a classifier makes of their commonest words."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from tenor.embedding.vectors import CONFIG, CONFIG_BYTES, KIND, Vectors, load_vectors
from tenor.errors import RunError, TenorError, UsageError
from tenor.preparation.tokeniser import negation
from tenor.reports.values import readable
from tenor.store.trusted import read_json

if TYPE_CHECKING:
    from tenor.runtime.model import SentimentModel

MOST_WORDS, FEWEST_WORDS = 300, 4  # on a map
_UNKNOWN = np.nan  # the sentiment of a word that the classifier does not know

Doubles = npt.NDArray[np.float64]


@dataclass(frozen=True)
class VectorsData:
    """Word vectors with their configuration and, if there is a classifier, the sentiments of the commonest words."""

    name: str
    table: Vectors
    config: dict[str, Any] = field(default_factory=dict)
    sentiments: Doubles | None = None


def holds_vectors(path: Path) -> bool:
    """Whether a folder was made by `tenor embed`."""
    try:
        return bool(read_json(path / CONFIG, CONFIG_BYTES, RunError).get("kind") == KIND)
    except (OSError, TenorError):
        return False


def read_vectors(folder: Path, run: Path | None = None) -> VectorsData:
    """Read a folder made by `tenor embed`.

    Args:
        folder: The folder.
        run: A run folder; its classifier gives the words their sentiments.

    Raises:
        RunError: The vectors or the run cannot be read.
        UsageError: There are too few words for a map.
    """
    table = load_vectors(folder)
    words = table.words[:MOST_WORDS]
    if len(words) < FEWEST_WORDS:
        remedy = f"train on a text with {FEWEST_WORDS} words or more"
        raise UsageError(f"has only {len(words)} words, too few for a map", where=folder, remedy=remedy)
    config = read_json(folder / CONFIG, CONFIG_BYTES, RunError)
    sentiments = word_sentiments(_classifier(run), words) if run is not None else None
    return VectorsData(readable(folder.resolve().name), table, config, sentiments)


def _classifier(run: Path) -> SentimentModel:
    from tenor.runtime.model import load

    return load(run)


def word_sentiments(model: SentimentModel, words: Sequence[str]) -> Doubles:
    """What the classifier makes of each word as a review of its own: from -1 (its first class) to 1 (its last).

    A negated word is read as it stands in reviews, after "not". A word that the classifier does not know has no
    sentiment (NaN).
    """
    parts = [negation.readable([word]) for word in words]
    texts = [" ".join(part) for part in parts]
    scores = model.probabilities(texts) @ np.linspace(-1.0, 1.0, len(model.classes))
    found = model.predict(texts)
    known = [prediction.known_words >= len(part) for prediction, part in zip(found, parts, strict=True)]
    return np.where(known, scores, _UNKNOWN)
