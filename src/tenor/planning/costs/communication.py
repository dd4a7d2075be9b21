"""Seconds that messages take: formulas with a latency per message and a bandwidth.

Thakur, Rabenseifner and Gropp 2005, "Optimization of Collective Communication Operations in MPICH", derives the
ring and the tree. All functions work on plain numbers and on NumPy arrays.
"""

from __future__ import annotations

import math


def ring_seconds(payload: float, workers: int, latency: float, bytes_per_s: float) -> float:
    """Add up `payload` bytes over a ring: 2(N − 1) rounds, each with a latency and one N-th of the payload.

    T = 2(N − 1) × (latency + payload / (N × bandwidth))

    >>> round(ring_seconds(8e6, 4, 0.001, 1e9), 6)
    0.018
    """
    return 2 * (workers - 1) * (latency + payload / workers / bytes_per_s)


def tree_seconds(payload: float, workers: int, latency: float, bytes_per_s: float) -> float:
    """Add up over a binomial tree and send the sum back: few rounds, each with the whole payload.

    T = 2 ⌈log₂ N⌉ × (latency + payload / bandwidth)

    >>> round(tree_seconds(8e6, 4, 0.001, 1e9), 6)
    0.036
    """
    return 2 * math.ceil(math.log2(workers)) * (latency + payload / bytes_per_s)


def shared_memory_seconds(payload: float, workers: int, latency: float, bytes_per_s: float) -> float:
    """Add up through the memory of one machine: each worker writes its part once and reads those of all N.

    T = latency + (N + 1) × payload / bandwidth for N > 1, where the bandwidth is that of one core.
    """
    return latency + (workers + 1) * payload / bytes_per_s if workers > 1 else 0.0


def ring_bytes(payload: float, workers: int) -> float:
    """Bytes that one worker sends to add up `payload` bytes over a ring: 2 × payload × (N − 1) / N.

    It is also the mean over the workers of a tree: N − 1 messages of the whole payload go up, and as many down.
    """
    return 2 * payload * (workers - 1) / workers
