"""How much longer the slowest of N workers takes than one worker: a synchronous step waits for it."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]


def normal_slowest(sigma: float, workers: int) -> float:
    """The expected slowest of N workers, relative to their mean: 1 + σ √(2 ln N).

    This is the usual bound for normal noise with the relative deviation σ. It is tight for many workers, and too high
    for few: for two workers, the exact factor of σ is 1 / √π = 0.56 instead of 1.18.
    """
    return 1.0 + sigma * math.sqrt(2.0 * math.log(workers))


def measured_slowest(samples: Floats, workers: int) -> float:
    """The expected largest of N independent draws from measured relative times, relative to their mean.

    With n sorted samples x₁ ≤ … ≤ xₙ, the largest draw is xᵢ with the probability (i/n)^N − ((i−1)/n)^N. No draw can
    exceed the largest sample, so for many more workers than samples the result stays at the largest sample.
    """
    ordered = np.sort(samples)
    steps = np.arange(len(ordered) + 1) / len(ordered)
    weights = np.diff(steps**workers)
    return float((ordered * weights).sum() / ordered.mean())


def slowest_of(samples: Floats, workers: int) -> float:
    """The measured distribution as far as it reaches, then the normal formula where that is larger.

    Beyond one worker per sample the measured distribution has no information about the tail.
    """
    if workers == 1:
        return 1.0
    measured = measured_slowest(samples, workers)
    if workers <= len(samples):
        return measured
    sigma = float(np.std(samples) / np.mean(samples))
    return max(
        measured,
        measured_slowest(samples, len(samples)) + normal_slowest(sigma, workers) - normal_slowest(sigma, len(samples)),
    )
