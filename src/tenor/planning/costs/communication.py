"""Seconds that messages take: formulas with a latency per message and a bandwidth.

Thakur, Rabenseifner and Gropp 2005, "Optimization of Collective Communication Operations in MPICH", derives the
ring. All functions work on plain numbers and on NumPy arrays.
"""

from __future__ import annotations


def ring_seconds(payload: float, workers: int, latency: float, bytes_per_s: float) -> float:
    """Add up `payload` bytes over a ring: 2(N − 1) rounds, each with a latency and one N-th of the payload.

    T = 2(N − 1) × (latency + payload / (N × bandwidth))

    >>> round(ring_seconds(8e6, 4, 0.001, 1e9), 6)
    0.018
    """
    return 2 * (workers - 1) * (latency + payload / workers / bytes_per_s)


def shared_memory_seconds(payload: float, workers: int, latency: float, bytes_per_s: float) -> float:
    """Add up through the memory of one machine: each worker writes its part once and reads those of all N.

    T = latency + (N + 1) × payload / bandwidth for N > 1, where the bandwidth is that of one core.
    """
    return latency + (workers + 1) * payload / bytes_per_s if workers > 1 else 0.0


def ring_bytes(payload: float, workers: int) -> float:
    """Bytes that one worker sends to add up `payload` bytes over a ring: 2 × payload × (N − 1) / N."""
    return 2 * payload * (workers - 1) / workers
