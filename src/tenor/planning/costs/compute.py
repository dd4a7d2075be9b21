"""What computing costs a worker: seconds = fixed + per token × padded tokens, fitted to measured steps."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
ROUNDS = 20  # of reweighting
BAND = 3.0  # robust deviations beyond which a step counts less


@dataclass(frozen=True)
class CostLine:
    """A fitted line y = fixed + slope × x with the standard error of its height at the mean x."""

    fixed: float
    slope: float
    error: float  # relative

    def at(self, x: float) -> float:
        return self.fixed + self.slope * x


def fit_line(x: Floats, y: Floats) -> CostLine:
    """Fit a line whose noise is proportional to its height, and that a few slow steps do not move.

    Minimises Σ w (y − fixed − slope × x)² / y² with Huber's weights, which fall for steps far from the line. Neither
    number is negative: a step cannot cost less than nothing.

    Args:
        x: (steps,) such as padded tokens.
        y: (steps,) seconds, above 0.
    """
    weights = 1.0 / np.maximum(y, 1e-12) ** 2
    huber = np.ones_like(y)
    fixed, slope = 0.0, float(np.median(y / np.maximum(x, 1e-12)))
    for _ in range(ROUNDS):
        fixed, slope = _solve(x, y, weights * huber)
        off = (y - fixed - slope * x) / np.maximum(fixed + slope * x, 1e-12)
        scale = 1.4826 * float(np.median(np.abs(off - np.median(off)))) or 1e-12
        huber = np.minimum(1.0, BAND * scale / np.maximum(np.abs(off), 1e-12))
    error = float(scale / np.sqrt(len(y)))
    return CostLine(fixed, slope, error)


def _solve(x: Floats, y: Floats, weights: Floats) -> tuple[float, float]:
    total = weights.sum()
    mean_x, mean_y = (weights * x).sum() / total, (weights * y).sum() / total
    spread = (weights * (x - mean_x) ** 2).sum()
    slope = float((weights * (x - mean_x) * (y - mean_y)).sum() / spread) if spread > 0 else 0.0
    if slope <= 0.0:
        return float(mean_y), 0.0
    fixed = float(mean_y - slope * mean_x)
    if fixed < 0.0:
        return 0.0, float((weights * x * y).sum() / (weights * x * x).sum())
    return fixed, slope


def largest_share(samples: int, workers: int) -> float:
    """The share of a batch that the worker with the most rows gets, if rows have equal lengths: ⌈B/N⌉ / B."""
    return -(-samples // workers) / samples
