"""The number of threads that a model computes with."""

from __future__ import annotations

import torch

from tenor.environment import usable_cores


def inference_threads(threads: int, workers: int) -> int:
    """Set the number of threads that torch uses in this process, and return it.

    Args:
        threads: The number to use; 0 divides the cores among the workers.
        workers: Number of processes that predict at the same time. A single process with `threads` 0 keeps the number
            that torch has chosen, unless a container or a scheduler grants fewer cores.
    """
    if threads or workers > 1 or torch.get_num_threads() > usable_cores():
        torch.set_num_threads(num_threads(threads, workers))
    return torch.get_num_threads()


def num_threads(threads: int, workers: int) -> int:
    """Threads per worker: `threads`, or the cores divided among the workers if it is 0."""
    return threads or max(1, usable_cores() // workers)
