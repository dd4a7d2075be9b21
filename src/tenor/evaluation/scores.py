"""Probabilities and labels of scored rows, collected batch by batch and merged from workers in any order."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from tenor.errors import TrainingError, UsageError
from tenor.evaluation.decision import MIDDLE


class Scores:
    """Keeps every probability and label, 12 bytes per row of two classes, because an exact AUC needs all of them."""

    def __init__(self, threshold: float = MIDDLE) -> None:
        """`threshold` is that of the model, see `tenor.evaluation.decision`."""
        self.threshold = threshold
        self._probabilities: list[NDArray[np.float32]] = []
        self._labels: list[NDArray[np.int64]] = []

    def __len__(self) -> int:
        return sum(map(len, self._labels))

    def add(self, probabilities: NDArray[Any], labels: NDArray[Any]) -> None:
        """Add a batch.

        Args:
            probabilities: (n,) of the positive class, or (n, classes) of every class.
            labels: (n,)

        Raises:
            UsageError: The shapes do not fit each other or the earlier batches.
            TrainingError: A probability is not finite.
        """
        # Copied, because the caller may reuse the arrays for the next batch.
        chances = np.array(probabilities, dtype=np.float32)
        truth = np.array(labels, dtype=np.int64)
        self._check(chances, truth)
        if len(truth):
            self._probabilities.append(chances)
            self._labels.append(truth)

    def arrays(self) -> tuple[NDArray[np.float32], NDArray[np.int64]]:
        """All probabilities, (n,) or (n, classes), and all labels, (n,), in the order in which they were added."""
        if not self._labels:
            return np.empty(0, np.float32), np.empty(0, np.int64)
        return np.concatenate(self._probabilities), np.concatenate(self._labels)

    def _check(self, chances: NDArray[np.float32], truth: NDArray[np.int64]) -> None:
        if chances.ndim not in (1, 2) or truth.shape != chances.shape[:1]:
            raise UsageError(
                f"probabilities of shape {chances.shape} do not fit labels of shape {truth.shape}",
                remedy="give probabilities of shape (n,) or (n, classes), and labels of shape (n,)",
            )
        if self._probabilities and chances.shape[1:] != self._probabilities[0].shape[1:]:
            raise UsageError(
                "scores of different numbers of classes cannot be merged", remedy="measure them separately"
            )
        if not np.isfinite(chances).all():
            raise TrainingError(
                "the model computes probabilities that are not finite", remedy="train with a lower --lr"
            )
