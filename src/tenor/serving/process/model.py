"""The model behind the service: class probabilities of texts, and what each word contributes to them.

This is the only module of the service that knows how a model is read and computed.
"""

from __future__ import annotations

import hashlib
import sys
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from tenor.environment import usable_cores
from tenor.errors import RunError
from tenor.evaluation.decision import decide
from tenor.preparation.job.startup import announce
from tenor.progress import Silent
from tenor.runtime.explain import ExplainedPiece
from tenor.runtime.model import SentimentModel, load
from tenor.serving.process.remote import Contribution, model_files
from tenor.store.trusted import open_regular, sha256_of

MOST_PIECES = 256  # a longer text is explained by groups of words, so that the answer is bounded


class ServedModel:
    """A model that the service uses. Methods may be called from several threads at once.

    Attributes:
        labels: The names of the classes.
        version: 12 hexadecimal digits that change with the model.
        threshold: What the probability of the second of two classes must exceed, so that it is the label.
    """

    def __init__(self, model: SentimentModel, version: str) -> None:
        self._model = model
        self.labels, self.version, self.threshold = model.classes, version, model.threshold

    def predict_proba(self, texts: list[str]) -> NDArray[np.float32]:
        """The probability of each class: (texts, classes), in the order of `labels`."""
        return self._model.predict_proba(texts)

    def explain(self, texts: list[str]) -> list[list[Contribution]]:
        """What each word adds to the logit of the predicted label, as `tenor predict --explain` says it.

        A contribution above 0 supports the label; one below 0 speaks against it.
        """
        labels = decide(self.predict_proba(texts), self.threshold)
        explained = (self._model.explain(text, self.labels[label]) for text, label in zip(texts, labels, strict=True))
        return [grouped(text, pieces) for text, pieces in zip(texts, explained, strict=True)]


def grouped(text: str, pieces: list[ExplainedPiece], most: int = MOST_PIECES) -> list[Contribution]:
    """The words of a text with their contributions; of more than `most` words, groups of neighbours with their sums."""
    size = -(-len(pieces) // most) or 1
    groups = [pieces[start : start + size] for start in range(0, len(pieces), size)]
    places = [(group[0].start, group[-1].end, sum(piece.contribution for piece in group)) for group in groups]
    return [(start, end, text[start:end], value) for start, end, value in places]


class Notes(Silent):
    """Prints messages to standard error."""

    def warn(self, line: str) -> None:
        print(line, file=sys.stderr, flush=True)


def load_served(run: Path, threads: int) -> ServedModel:
    """Load a run folder, and predict once so that nothing has to be compiled or allocated by the first request.

    Raises:
        RunError: The folder cannot be used.
    """
    loaded = load(run)
    announce(Notes(), loaded.parts.kernels)
    loaded.threads = threads or max(1, usable_cores() // 2)
    model = ServedModel(loaded, version_of(run))
    model.predict_proba(["good", "not bad at all " * 4000] * 2)  # more than Python does without compiled code
    model.explain(["good", "not bad at all"])
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
