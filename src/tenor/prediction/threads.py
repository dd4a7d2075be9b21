"""The number of threads that a model computes with."""

from __future__ import annotations

from tenor.environment import usable_cores


def num_threads(threads: int, workers: int) -> int:
    """Threads per worker: `threads`, or the cores divided among the workers if it is 0."""
    return threads or max(1, usable_cores() // workers)
