"""The gradient noise scale: how large a batch can be before it needs more passes over the data.

McCandlish et al. 2018, "An Empirical Model of Large-Batch Training". The gradient of a batch of b samples has the
expected square E|g_b|² = |G|² + S / b, where G is the true gradient and S the trace of the samples' covariance. Workers
with small batches and the whole global batch give two such equations in every step. The noise scale is B = S / |G|².
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
BLOCKS = 20  # of neighbouring steps that are left out in turn, to find the error
LARGEST = 1e9  # samples; a noise scale beyond any batch


@dataclass(frozen=True)
class NoiseScale:
    """An estimate of the noise scale in samples, with an interval of two standard errors."""

    value: float
    low: float
    high: float
    steps: int


def steps_factor(batch: float, noise_scale: float) -> float:
    """Steps to the same loss, relative to infinitely large batches: 1 + B_noise / B.

    >>> steps_factor(64, 64), steps_factor(128, 64)
    (2.0, 1.5)
    """
    return 1.0 + noise_scale / batch


def samples_factor(batch: float, noise_scale: float) -> float:
    """Samples to the same loss, relative to infinitely small batches: 1 + B / B_noise."""
    return 1.0 + batch / noise_scale


def estimate_noise_scale(
    small_squares: Floats, large_squares: Floats, small: Floats, large: Floats
) -> NoiseScale | None:
    """Estimate the noise scale from the squared gradient norms of many steps.

    Per step, with 1/b the mean of the inverse batches of the workers and B the global batch:

        S = (|g_b|² − |g_B|²) / (1/b − 1/B),   |G|² = |g_B|² − S / B

    Both are unbiased, so they are averaged over the steps before they are divided. The error comes from leaving out
    one block of neighbouring steps at a time (jackknife), because neighbouring steps are alike.

    Args:
        small_squares: (steps,) the mean of the squared norms of the workers' mean gradients.
        large_squares: (steps,) the squared norm of the mean gradient of the global batch.
        small: (steps,) the mean of the inverse numbers of samples of the workers.
        large: (steps,) the inverse numbers of samples of the global batch.

    Returns:
        The estimate; None if there are too few steps, or the true gradient drowns in noise.
    """
    known = small > large
    if known.sum() < 2 * BLOCKS:
        return None
    noise = (small_squares[known] - large_squares[known]) / (small[known] - large[known])
    signal = large_squares[known] - noise * large[known]
    value = _ratio(noise.mean(), signal.mean())
    if value is None:
        return None
    blocks = np.array_split(np.arange(len(noise)), BLOCKS)
    left = [_ratio(np.delete(noise, block).mean(), np.delete(signal, block).mean()) for block in blocks]
    logs = np.log([one if one is not None else LARGEST for one in left])
    error = float(np.sqrt((BLOCKS - 1) * np.var(logs)))
    return NoiseScale(
        value, value * float(np.exp(-2 * error)), min(LARGEST, value * float(np.exp(2 * error))), len(noise)
    )


def _ratio(noise: float, signal: float) -> float | None:
    if noise <= 0.0:
        return None
    return min(LARGEST, float(noise / signal)) if signal > 0.0 else None
