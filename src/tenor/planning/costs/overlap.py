"""Computing and communicating at the same time: a p-norm between doing both in turn and doing both at once."""

from __future__ import annotations

import math


def overlapped_seconds(compute: float, communicate: float, gamma: float) -> float:
    """T = (Tc^γ + Tn^γ)^(1/γ): γ = 1 is one after the other, and γ = ∞ is the longer of the two.

    From Qiao et al. 2021, "Pollux: Co-adaptive Cluster Scheduling for Goodput-Optimized Deep Learning", equation 11.

    >>> overlapped_seconds(3.0, 4.0, 1.0), overlapped_seconds(3.0, 4.0, 2.0)
    (7.0, 5.0)
    """
    longer, shorter = max(compute, communicate), min(compute, communicate)
    if longer <= 0.0 or math.isinf(gamma):
        return longer
    return longer * math.pow(1.0 + math.pow(shorter / longer, gamma), 1.0 / gamma)  # no small number underflows
