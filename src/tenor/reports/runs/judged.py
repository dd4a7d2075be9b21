"""Rows that a run has judged, with its probabilities, and which of them two runs have in common."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from tenor.errors import UsageError
from tenor.evaluation.metrics import decide
from tenor.reports.runs.data import RunData
from tenor.training.runs.row_scores import read_row_scores


@dataclass(frozen=True)
class JudgedRows:
    """Rows with their labels, and the probabilities that one run gave them."""

    where: NDArray[np.int64]  # (rows, 2): number of the file, and the line or the number of the row
    labels: NDArray[np.int64]  # (rows,)
    probabilities: NDArray[np.float32]  # (rows,) of the second class, or (rows, classes)

    @property
    def predicted(self) -> NDArray[np.int64]:
        return decide(self.probabilities)

    def of_label(self, label: NDArray[np.int64]) -> NDArray[np.float32]:
        """The probability of one label per row."""
        if self.probabilities.ndim == 1:
            return np.where(label == 1, self.probabilities, 1 - self.probabilities)
        return self.probabilities[np.arange(len(label)), label]

    def take(self, rows: NDArray[np.int64]) -> JudgedRows:
        return JudgedRows(self.where[rows], self.labels[rows], self.probabilities[rows])


def stored_rows(run: RunData) -> JudgedRows | None:
    """Return the test rows whose scores the run stored; None if it stored none."""
    scores = read_row_scores(run.folder) if run.folder is not None else None
    if scores is None:
        return None
    probabilities, labels = scores.arrays()
    where = np.stack([np.zeros(len(labels), np.int64), np.arange(len(labels))], axis=1)
    return JudgedRows(where, labels, probabilities)


def why_not_same_rows(first: RunData, second: RunData, one: JudgedRows | None, other: JudgedRows | None) -> str:
    """Return why the stored rows of two runs cannot be compared; empty if they can."""
    for run, rows in ((first, one), (second, other)):
        if rows is None:
            return f"{run.name} has not stored the scores of its test rows"
    assert one is not None and other is not None
    if first.config.get("data_sha256") != second.config.get("data_sha256"):
        return "the runs were trained on different data"
    if first.classes != second.classes or not np.array_equal(one.labels, other.labels):
        return "the runs were measured on different rows"
    return ""


def common_rows(one: JudgedRows, other: JudgedRows) -> tuple[JudgedRows, JudgedRows]:
    """Return the rows that both runs judged, in the same order. A tokeniser may leave out rows that another keeps."""
    if np.array_equal(one.where, other.where):
        return _check_labels(one, other)
    places = [{tuple(where): row for row, where in enumerate(judged.where.tolist())} for judged in (one, other)]
    both = sorted(places[0].keys() & places[1].keys())
    if not both:
        raise UsageError("the runs have no rows in common", remedy="give --data a file that both runs can read")
    rows = [np.array([place[where] for where in both]) for place in places]
    return _check_labels(one.take(rows[0]), other.take(rows[1]))


def _check_labels(one: JudgedRows, other: JudgedRows) -> tuple[JudgedRows, JudgedRows]:
    if not np.array_equal(one.labels, other.labels):
        remedy = "give --data whose labels mean the same to both runs"
        raise UsageError("the runs read different labels for the same rows", remedy=remedy)
    return one, other
