"""Amdahl's law: T(N) = serial + parallel / N, fitted to measured times."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True)
class Amdahl:
    """Seconds that N machines need; `error` is the relative error of a prediction within the measured range."""

    serial: float
    parallel: float
    error: float

    def seconds(self, count: float) -> float:
        return self.serial + self.parallel / count


def fit_amdahl(points: Sequence[tuple[int, float]]) -> Amdahl | None:
    """Fit to (machines, seconds) by least squares of relative differences; None without two different counts.

    Neither part is negative. With two points the line passes through both, and the error is a guess of 10 %.
    """
    if len({count for count, _ in points}) < 2:
        return None
    weights = [1.0 / seconds**2 for _, seconds in points]
    xs, ys, total = [1.0 / count for count, _ in points], [seconds for _, seconds in points], sum(weights)
    mean_x = sum(w * x for w, x in zip(weights, xs, strict=True)) / total
    mean_y = sum(w * y for w, y in zip(weights, ys, strict=True)) / total
    square = sum(w * (x - mean_x) ** 2 for w, x in zip(weights, xs, strict=True))
    parallel = sum(w * (x - mean_x) * (y - mean_y) for w, x, y in zip(weights, xs, ys, strict=True)) / square
    parallel = max(0.0, min(parallel, mean_y / mean_x))
    serial = mean_y - parallel * mean_x
    free = len(points) - 2
    off = [(serial + parallel * x) / y - 1.0 for x, y in zip(xs, ys, strict=True)]
    error = math.sqrt(sum(one * one for one in off) / free) if free else 0.0
    return Amdahl(serial, parallel, max(0.1 if not free else 0.05, error))
