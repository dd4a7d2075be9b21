"""Accuracy by the number of samples seen: a power law of the error, fitted to the validation curve of a run.

error(x) = error₀ × (x / x₀)^(−b) beyond the measured curve (Hestness et al. 2017, "Deep Learning Scaling is
Predictable, Empirically"). It knows of no floor below which no model gets, so its interval is wide far from the curve.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

USUAL = (0.1, 0.07)  # the exponent b and its error, for a curve of one point
LARGEST = 0.4  # of b; steeper curves come from the first epochs and do not last
EVALUATION_ERROR = 0.02  # relative error of the measured error: rows of the validation split, and seeds


@dataclass(frozen=True)
class LearningCurve:
    """Errors on the validation split by samples, never rising, and the exponent with which they continue to fall."""

    samples: tuple[float, ...]
    errors: tuple[float, ...]
    exponent: float
    exponent_error: float

    def error(self, samples: float, sigmas: float = 0.0) -> float:
        """The expected error after some samples; `sigmas` gives the ends of an interval, above 0 for larger errors."""
        exponent = self.exponent - sigmas * self.exponent_error
        base = self._inside(samples)
        ratio = max(1.0, samples / self.samples[-1])
        away = abs(math.log(samples / self.samples[-1]))
        unsure = math.exp(sigmas * math.hypot(EVALUATION_ERROR, 0.02 * away if samples < self.samples[-1] else 0.0))
        return min(1.0, base * math.pow(ratio, -max(0.0, exponent)) * unsure)

    def _inside(self, samples: float) -> float:
        """The error within the measured curve: interpolated in logarithms, and by the exponent before its start."""
        if samples <= self.samples[0]:
            return min(1.0, self.errors[0] * math.pow(samples / self.samples[0], -max(self.exponent, USUAL[0])))
        for (x, y), (next_x, next_y) in zip(self._points, self._points[1:], strict=False):
            if samples <= next_x:
                share = math.log(samples / x) / math.log(next_x / x)
                return math.exp((1 - share) * math.log(y) + share * math.log(next_y))
        return self.errors[-1]

    @property
    def _points(self) -> list[tuple[float, float]]:
        return list(zip(self.samples, self.errors, strict=True))

    def samples_for(self, error: float, sigmas: float = 0.0) -> float:
        """The samples until an error is reached; infinite if the curve never gets there."""
        low, high = self.samples[0] / 1e4, self.samples[-1] * 1e6
        if self.error(high, sigmas) > error:
            return math.inf
        for _ in range(100):
            middle = math.sqrt(low * high)
            low, high = (middle, high) if self.error(middle, sigmas) > error else (low, middle)
        return high


def fit_curve(points: Sequence[tuple[float, float]]) -> LearningCurve | None:
    """Fit the curve to (samples, accuracy) points; None without any.

    The exponent is the slope of the line through the logarithms, by least squares.
    """
    best: list[tuple[float, float]] = []
    for samples, accuracy in sorted(points):
        error = max(1.0 - accuracy, 1e-6)
        lowest = min(error, best[-1][1]) if best else error
        if samples > 0 and (not best or samples > best[-1][0]):
            best.append((float(samples), lowest))
    if not best:
        return None
    exponent, spread = _slope(best) if len(best) > 1 else USUAL
    return LearningCurve(tuple(x for x, _ in best), tuple(y for _, y in best), exponent, spread)


def _slope(points: Sequence[tuple[float, float]]) -> tuple[float, float]:
    xs, ys = [math.log(x) for x, _ in points], [math.log(y) for _, y in points]
    mean_x, mean_y = sum(xs) / len(xs), sum(ys) / len(ys)
    square = sum((x - mean_x) ** 2 for x in xs)
    slope = -sum((x - mean_x) * (y - mean_y) for x, y in zip(xs, ys, strict=True)) / square
    exponent = min(max(slope, 0.0), LARGEST)
    return exponent, max(0.5 * exponent, USUAL[1] / 2)
