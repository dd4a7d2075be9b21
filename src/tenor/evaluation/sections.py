"""The rows that one task scores with a model: a piece of a raw file, or a section of prepared data.

The batches are the same in one process and on several workers, so the metrics are the same too.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from tenor.corpus.labels import LabelRule
from tenor.corpus.pieces import Piece
from tenor.evaluation.labelled import LabelledRows, read_labelled
from tenor.evaluation.scores import Scores
from tenor.preparation.tokeniser.encode import Encoder
from tenor.store.reader import open_split

SECTIONS_PER_WORKER = 4  # of prepared data; several, so that one slow worker delays the others little


class Scorer(Protocol):
    """What scoring needs of a model."""

    batch_rows: int  # rows that the model scores at a time

    @property
    def classes(self) -> tuple[str, ...]: ...

    @property
    def encoder(self) -> Encoder: ...

    def score_tokens(self, tokens: NDArray[np.int32], lengths: NDArray[np.int32]) -> NDArray[np.float32]:
        """The probability of each class, (rows, classes)."""
        ...


@dataclass(frozen=True)
class LabelledPiece:
    """A piece of a raw file, and the rule by which its labels are read."""

    piece: Piece
    rule: LabelRule

    def read(self, model: Scorer) -> Iterator[LabelledRows]:
        yield from read_labelled(self.piece, self.rule, model.encoder)


@dataclass(frozen=True)
class SplitSection:
    """Every `step`-th batch of a split of prepared data, starting with batch `first`."""

    data: str
    split: str
    first: int
    step: int

    def read(self, model: Scorer) -> Iterator[LabelledRows]:
        size = model.batch_rows
        with open_split(Path(self.data), self.split, verify=False) as split:
            order = np.argsort(split.lengths, kind="stable")  # rows of similar length together, so little padding
            for start in range(self.first * size, len(order), self.step * size):
                rows = order[start : start + size]
                tokens, lengths = split.gather(rows)
                yield LabelledRows(tokens, lengths, split.labels[rows], rows)


def cut_split(data: Path, split: str, workers: int) -> list[SplitSection]:
    """A split of prepared data as sections for several workers."""
    step = 1 if workers == 1 else SECTIONS_PER_WORKER * workers
    return [SplitSection(str(data.resolve()), split, first, step) for first in range(step)]


def score(
    model: Scorer, selected: LabelledPiece | SplitSection
) -> Iterator[tuple[NDArray[np.float32], NDArray[np.uint8]]]:
    """(probabilities, labels) of the selected rows, batch by batch, in the shape that `Scores.add` takes."""
    for rows in selected.read(model):
        chances = model.score_tokens(rows.tokens, rows.lengths)
        yield chances[:, 1] if len(model.classes) == 2 else chances, rows.labels


def write_scores(path: Path, scores: Scores, num_classes: int) -> None:
    """Write scores to a file for another process."""
    chances, labels = scores.arrays()
    if not len(labels) and num_classes > 2:
        chances = chances.reshape(0, num_classes)
    with path.open("wb") as file:
        np.savez(file, chances=chances, labels=labels)


def read_scores(path: Path, scores: Scores) -> None:
    """Add the scores of a file that `write_scores` has written."""
    with np.load(path) as found:
        arrays: dict[str, NDArray[Any]] = dict(found)
    scores.add(arrays["chances"], arrays["labels"])
