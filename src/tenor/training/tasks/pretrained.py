"""Pretrained word vectors as initial rows of the embedding: a folder of `tenor embed`, or another program's file."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from tenor.embedding.exchange import read_file
from tenor.embedding.subwords import compose, rows_of
from tenor.embedding.vectors import CONFIG, CONFIG_BYTES, Vectors, load_vectors
from tenor.errors import RunError, UsageError
from tenor.preparation.tokeniser.negation import plain
from tenor.store.trusted import read_json
from tenor.training.settings import NO_VECTORS, OWN_VECTORS, TrainSettings

FOLDER = "vectors"  # in the run folder: those that were learned from the data


def start_vectors(settings: TrainSettings, run: Path | None) -> Path | None:
    """Where the vectors are from which the deep part starts; None for random ones."""
    if settings.embeddings == NO_VECTORS or settings.model == "wide":
        return None
    if settings.embeddings != OWN_VECTORS:
        return Path(settings.embeddings)
    if run is None:
        raise UsageError("--embeddings auto needs a run folder", remedy="give the path of word vectors, or none")
    return run / FOLDER


def learning_seconds(folder: Path) -> float:
    """How long it took to learn the vectors in a folder; 0 if the folder does not say."""
    result = read_json(folder / CONFIG, CONFIG_BYTES, RunError).get("result")
    seconds = result.get("seconds") if isinstance(result, dict) else None
    return float(seconds) if isinstance(seconds, int | float) and seconds >= 0 else 0.0


@dataclass(frozen=True)
class Matched:
    """The vectors of those words of the data that have one."""

    places: NDArray[np.int64]  # positions among the words of the data
    vectors: NDArray[np.float32]  # (places, width)


def read_vectors(path: Path, words: Sequence[str], width: int) -> Matched:
    """The vectors of these words.

    Args:
        path: A folder made by `tenor embed`, or a file in word2vec's text or binary format or fastText's `.vec`.
        words: The words of the data. A negated word without a vector gets that of the plain word, because other
            programs and plain text have no negated words. Other words without a vector get one from their character
            n-grams if the folder has vectors of n-grams.
        width: The width of the embedding.

    Raises:
        UsageError: The vectors cannot be read, have another width, or none of the words has one.
        RunError: The folder is damaged.
    """
    found = load_vectors(path) if path.is_dir() else read_file(path, frozenset(words).union(map(plain, words)))
    if found.matrix.shape[1] != width:
        what = f"holds vectors of {found.matrix.shape[1]} numbers, but --embedding-dim is {width}"
        raise UsageError(what, where=path, remedy=f"use --embedding-dim {found.matrix.shape[1]}")
    rows_of_words = (found.places.get(word, found.places.get(plain(word))) for word in words)
    own = [(place, row) for place, row in enumerate(rows_of_words) if row is not None]
    places, rows = np.array(own, np.int64).reshape(-1, 2).T
    matched = Matched(places, found.matrix[rows])
    matched = _with_ngrams(matched, found, words)
    if not len(matched.places):
        raise UsageError("has none of the words of the data", where=path, remedy="check its language")
    return matched


def _with_ngrams(matched: Matched, found: Vectors, words: Sequence[str]) -> Matched:
    if found.subwords is None:
        return matched
    missing = np.setdiff1d(np.arange(len(words)), matched.places)
    rows = rows_of([words[place] for place in missing], found.subwords.shape, 0, with_own=False)
    made, has_any = compose(found.subwords.table, rows), np.diff(rows.starts) > 0
    places = np.concatenate([matched.places, missing[has_any]])
    return Matched(places, np.concatenate([matched.vectors, made[has_any]]))
