"""The model behind the service: class probabilities of texts, and what each word contributes to them.

This is the only module of the service that knows how a run folder is read and computed.
"""

from __future__ import annotations

import hashlib
import re
import sys
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from tenor.environment import usable_cores
from tenor.errors import RunError
from tenor.preparation.job.startup import announce
from tenor.progress import Silent
from tenor.runtime.model import SentimentModel, load
from tenor.serving.process.remote import Contribution, model_files
from tenor.store.trusted import open_regular, sha256_of

MOST_PIECES = 256  # a longer text is explained by groups of words, so that its cost is bounded
_WORD = re.compile(r"[^\W_]+(?:['’][^\W_]+)*|[!?]+")
_SMALLEST = 1e-7  # probabilities are kept this far from 0 and 1, so that log-odds are finite


class ServedModel:
    """A model that the service uses. Methods may be called from several threads at once.

    Attributes:
        labels: The names of the classes.
        version: 12 hexadecimal digits that change with the model.
    """

    def __init__(self, model: SentimentModel, version: str) -> None:
        self._model = model
        self.labels, self.version = model.classes, version

    def predict_proba(self, texts: list[str]) -> NDArray[np.float32]:
        """The probability of each class: (texts, classes), in the order of `labels`."""
        return self._model.predict_proba(texts)

    def explain(self, texts: list[str]) -> list[list[Contribution]]:
        """What each word contributes to the log-odds of the predicted label, by leaving the word out.

        A contribution above 0 supports the label; one below 0 speaks against it.
        """
        return [self._explain_one(text) for text in texts]

    def _explain_one(self, text: str) -> list[Contribution]:
        spans = pieces_of(text)
        variants = [text[:start] + " " + text[end:] for start, end in spans]
        chances = self.predict_proba([text, *variants]).astype(np.float64)
        odds = log_odds(chances[:, int(chances[0].argmax())])
        return [
            (start, end, text[start:end], float(odds[0] - without))
            for (start, end), without in zip(spans, odds[1:], strict=True)
        ]


def pieces_of(text: str, most: int = MOST_PIECES) -> list[tuple[int, int]]:
    """Start and end of each word; of groups of neighbouring words if the text has more than `most` words."""
    words = [match.span() for match in _WORD.finditer(text)]
    size = -(-len(words) // most) or 1
    groups = [words[start : start + size] for start in range(0, len(words), size)]
    return [(group[0][0], group[-1][1]) for group in groups]


def log_odds(chances: NDArray[np.float64]) -> NDArray[np.float64]:
    """log(p / (1 - p)), finite also for 0 and 1."""
    kept = np.clip(chances, _SMALLEST, 1 - _SMALLEST)
    result: NDArray[np.float64] = np.log(kept / (1 - kept))
    return result


class Notes(Silent):
    """Prints messages to standard error."""

    def warn(self, line: str) -> None:
        print(line, file=sys.stderr, flush=True)


def load_served(run: Path, threads: int) -> ServedModel:
    """Load a run folder, and predict once so that nothing has to be compiled or allocated by the first request.

    Raises:
        RunError: The folder cannot be used.
    """
    announce(Notes())
    loaded = load(run)
    loaded.threads = threads or max(1, usable_cores() // 2)
    model = ServedModel(loaded, version_of(run))
    model.explain(["good", "not bad at all"])
    model.predict_proba(["good", "not bad at all " * 40] * 16)
    return model


def version_of(run: Path) -> str:
    """12 hexadecimal digits that change with the files of the model."""
    digest = hashlib.sha256()
    for file in model_files(run):
        try:
            with open_regular(file, RunError) as handle:
                digest.update(sha256_of(handle).encode())
        except FileNotFoundError:
            raise RunError(f"{file.name} is missing", where=run, remedy="give a folder made by `tenor train`") from None
    return digest.hexdigest()[:12]
