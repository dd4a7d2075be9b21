"""The learning rate as a pure function of the step.

A rate is chosen for a reference batch size. A larger batch scales it: linearly with gradual warm-up (Goyal et al.
2017), by the square root, which suits recurrent models better, or linearly up to a cap.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

CAP = 4.0  # the largest factor of the scaling rule `capped`


@dataclass(frozen=True)
class Schedule:
    """Warm-up rises from `base` to `peak`, then the rate decays."""

    base: float
    peak: float
    warmup_steps: int
    total_steps: int
    decay: str

    def __call__(self, step: int, time_share: float = 0.0) -> float:
        """The rate of a step; steps count from 0.

        Args:
            step: The number of the step.
            time_share: The share of the time limit that is over. If the limit comes before the last step, the rate
                falls with the time instead of the steps, also where the warm-up is not over by then.
        """
        span = max(1, self.total_steps - self.warmup_steps)
        rate = self._after_warmup(max(0.0, 1.0 - max((step - self.warmup_steps) / span, time_share)))
        if step >= self.warmup_steps:
            return rate
        rising = self.base + (self.peak - self.base) * (step + 1) / self.warmup_steps
        return min(rising, rate) if time_share else rising

    def _after_warmup(self, left: float) -> float:
        """The rate where this share of the steps or of the time is left."""
        if self.decay == "linear":
            return self.peak * left
        if self.decay == "cosine":
            return self.peak * 0.5 * (1.0 - math.cos(math.pi * left))
        return self.peak


def scaled_rate(lr: float, batch_size: int, reference_batch: int, rule: str) -> float:
    """The rate for `batch_size` if `lr` was chosen for `reference_batch`; 0 means for this batch size."""
    if not reference_batch or rule == "none":
        return lr
    ratio = batch_size / reference_batch
    if rule == "capped":
        return lr * min(ratio, CAP)
    return lr * (ratio if rule == "linear" else math.sqrt(ratio))
