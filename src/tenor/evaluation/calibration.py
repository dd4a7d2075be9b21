"""Reliability of probabilities: of the rows that got about the same probability, how many the model was right about.

For two classes, the probability is that of the second class, and a row counts if it has that class. For more classes,
it is the highest probability of the row, and a row counts if its class is the predicted one. The expected calibration
error is the mean distance between probability and share over the bins, weighted by their rows (Guo et al. 2017, "On
Calibration of Modern Neural Networks").
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

NUM_BINS = 15  # of equal width, as in the paper
_UNITS = 1 << 32  # probabilities are summed as whole numbers of 1 / _UNITS, so their order does not matter


@dataclass(frozen=True)
class ReliabilityBin:
    """Rows whose probability lies from `low` to below `high`; the last bin also has those at 1.

    Attributes:
        low: Smallest probability of the bin.
        high: End of the bin.
        rows: Number of rows.
        probability: Mean probability of the rows.
        share: Share of the rows for which the event of the probability came true.
    """

    low: float
    high: float
    rows: int
    probability: float
    share: float


def reliability(
    probabilities: NDArray[np.float32], labels: NDArray[np.int64], num_bins: int = NUM_BINS
) -> list[ReliabilityBin]:
    """Compare probabilities with what came true.

    Args:
        probabilities: (rows,) of the second class, or (rows, classes).
        labels: (rows,)
        num_bins: Number of bins of equal width.

    Returns:
        The bins that have rows, by rising probability.
    """
    if probabilities.ndim == 2 and probabilities.shape[1] == 2:
        probabilities = probabilities[:, 1]
    if probabilities.ndim == 1:
        chances, is_true = probabilities, labels == 1
    else:
        chances, is_true = probabilities.max(axis=1), probabilities.argmax(axis=1) == labels
    exact = chances.astype(np.float64)
    places = np.minimum((exact * num_bins).astype(np.int64), num_bins - 1)
    rows = np.bincount(places, minlength=num_bins)
    hits = np.bincount(places[is_true], minlength=num_bins)
    sums = np.zeros(num_bins, np.int64)
    np.add.at(sums, places, np.rint(exact * _UNITS).astype(np.int64))
    return [
        ReliabilityBin(
            low=place / num_bins,
            high=(place + 1) / num_bins,
            rows=int(rows[place]),
            probability=int(sums[place]) / (_UNITS * int(rows[place])),
            share=int(hits[place]) / int(rows[place]),
        )
        for place in np.flatnonzero(rows).tolist()
    ]


def expected_calibration_error(bins: Sequence[ReliabilityBin]) -> float:
    """Return the mean of |probability − share| over the bins, weighted by their rows; 0 without rows."""
    total = sum(one.rows for one in bins)
    return math.fsum(one.rows * abs(one.probability - one.share) for one in bins) / total if total else 0.0
