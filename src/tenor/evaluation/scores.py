"""What a model said beside what was true, collected batch by batch and merged over workers in any order."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from tenor.errors import TrainingError, UsageError


class Scores:
    """Probabilities and labels kept as they are, because exact AUC needs every one of them: 12 bytes a row."""

    def __init__(self) -> None:
        self._probabilities: list[NDArray[np.float32]] = []
        self._labels: list[NDArray[np.int64]] = []

    def __len__(self) -> int:
        return sum(map(len, self._labels))

    def add(self, probabilities: NDArray[Any], labels: NDArray[Any]) -> None:
        """Take a batch: `probabilities` of the positive class (n,), or of every class (n, classes); `labels` (n,)."""
        # Copies: the caller may fill the same buffers with the next batch.
        chances = np.array(probabilities, dtype=np.float32)
        truth = np.array(labels, dtype=np.int64)
        self._check(chances, truth)
        if len(truth):
            self._probabilities.append(chances)
            self._labels.append(truth)

    def merge(self, other: Scores) -> None:
        """Take over what another worker collected."""
        for probabilities, labels in zip(other._probabilities, other._labels, strict=True):
            self.add(probabilities, labels)

    def arrays(self) -> tuple[NDArray[np.float32], NDArray[np.int64]]:
        """All probabilities, (n,) or (n, classes), and all labels, (n,), in the order they came."""
        if not self._labels:
            return np.empty(0, np.float32), np.empty(0, np.int64)
        return np.concatenate(self._probabilities), np.concatenate(self._labels)

    def _check(self, chances: NDArray[np.float32], truth: NDArray[np.int64]) -> None:
        if chances.ndim not in (1, 2) or truth.shape != chances.shape[:1]:
            raise UsageError(
                f"probabilities of shape {chances.shape} do not fit labels of shape {truth.shape}",
                remedy="give (n,) or (n, classes) beside (n,)",
            )
        if self._probabilities and chances.shape[1:] != self._probabilities[0].shape[1:]:
            raise UsageError("scores of different numbers of classes cannot be merged", remedy="measure them apart")
        if not np.isfinite(chances).all():
            raise TrainingError("the model gave probabilities that are not finite", remedy="lower the learning rate")
