"""Reserve memory before balanced training: a worker computes twice its equal share once and discards the result.

When a worker's share grows, its memory grows, and memory that is touched for the first time is slow: on a virtual
machine, 100 MB can cost more than a step. Without this the other workers would wait in the steps after each change of
shares, and the balancer would mistake such a step for the worker's speed. The warm-up changes no weight, and dropout
masks depend on the sample, not on the state of a random generator.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace

import torch
from torch.nn import functional as F  # noqa: N812

from tenor.memory import free_bytes, keep_freed_memory, reserve, resident_bytes
from tenor.training.batch import TrainBatch

EQUAL_SHARES = 2.0  # the largest share of one of two workers; among many workers, shares are rarely larger
MOST_FREE = 0.25  # of the machine's free memory, for all of its workers together


def warm_up(batch: TrainBatch, compute: Callable[[TrainBatch], object], local_size: int) -> None:
    """Compute a batch, then reserve as much memory as that took once more.

    Args:
        batch: As large as this worker is likely to get, see `enlarge`.
        compute: Runs forward and backward over a batch and discards the gradients.
        local_size: The number of workers on this machine.
    """
    if len(batch) == 0 or not keep_freed_memory():
        return
    before = resident_bytes()
    compute(batch)
    # As much again, because memory becomes fragmented after batches of many shapes.
    reserve(min(resident_bytes() - before, round(MOST_FREE * free_bytes() / local_size)))


def enlarge(whole: TrainBatch, num_workers: int, longest: int, cap: float) -> TrainBatch:
    """A batch as large as one of the workers is likely to get: rows of a whole batch, all padded to the longest row.

    Args:
        whole: A global batch.
        num_workers: The workers that share it.
        longest: The length of the longest row of the data.
        cap: The most padded tokens that this worker may get.
    """
    longest = max(len(whole.inputs), longest)
    rows = num_rows(len(whole), num_workers, longest, cap)
    inputs = F.pad(whole.inputs[:, :rows], (0, 0, 0, longest - len(whole.inputs)))
    lengths = torch.full((rows,), longest, dtype=whole.lengths.dtype)
    ngrams = whole.ngrams and whole.ngrams.samples(0, rows)
    labels, keys = whole.labels[:rows], whole.keys[:rows]
    return replace(whole, inputs=inputs, lengths=lengths, labels=labels, keys=keys, ngrams=ngrams)


def num_rows(batch_rows: int, num_workers: int, longest: int, cap: float) -> int:
    """Twice an equal share, limited by the rows of a batch and by the worker's cap of padded tokens."""
    return min(batch_rows, math.ceil(EQUAL_SHARES * batch_rows / num_workers), int(min(cap / longest, batch_rows)))
