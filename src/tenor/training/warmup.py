"""Memory for larger shares, taken before training: a worker computes twice its equal share, and forgets it.

Shares that grow make a worker's memory grow, and memory that is touched for the first time is slow: on a virtual
machine 100 MB can cost more than a step. Without this the others would wait in the steps after each change of shares,
and the balancer would take such a step for the worker's speed. Nothing is learned from it: no weight moves, and dropout
goes by the sample, not by a generator that would be a draw ahead.
"""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import torch
from torch.nn import functional as F  # noqa: N812

from tenor.memory import free_bytes, keep_freed_memory, reserve, resident_bytes
from tenor.models.batch import Batch
from tenor.training.balance_mode import OFF
from tenor.training.loop import Loop
from tenor.training.strategies.base import backpropagate

EQUAL_SHARES = 2.0  # of two workers none can get more; among many it is seldom more
MOST_FREE = 0.25  # of the machine's free memory, for all its workers together


def warm_up(loop: Loop, local_size: int) -> None:
    """For whole models on processors whose shares may change; elsewhere nothing."""
    is_wanted = loop.balance.every != OFF and loop.group.size > 1 and loop.grid.row.size == 1
    if not is_wanted or loop.device.type != "cpu" or not keep_freed_memory():
        return
    batch = _large(loop)
    if len(batch) == 0:
        return
    before = resident_bytes()
    loop.model.train()
    backpropagate(loop.model, loop.optimizer, batch, loop.task.objective)
    loop.optimizer.zero_gradients()
    for table in loop.optimizer.tables.values():
        table.release()
    # As much again, for what lies in pieces once batches of many shapes have come and gone.
    reserve(min(resident_bytes() - before, round(MOST_FREE * free_bytes() / local_size)))


def _large(loop: Loop) -> Batch:
    """A batch as large as this worker is likely to get: rows of the next one, all as long as the longest there are."""
    whole = loop.task.load(loop.cursor.epoch, loop.cursor.batch, 0, np.ones(1))
    longest = max(len(whole.tokens), int(loop.task.order.lengths.max()))
    column = loop.grid.column
    rows = num_rows(len(whole), column.size, longest, float(loop.balance.balancer.caps[column.rank]))
    tokens = F.pad(whole.tokens[:, :rows], (0, 0, 0, longest - len(whole.tokens)))
    lengths = torch.full((rows,), longest, dtype=whole.lengths.dtype)
    return replace(whole, tokens=tokens, lengths=lengths, labels=whole.labels[:rows], keys=whole.keys[:rows])


def num_rows(batch_rows: int, num_workers: int, longest: int, cap: float) -> int:
    """Twice an equal share, but no more than a batch has, nor than the worker's cap of padded tokens allows."""
    return min(batch_rows, math.ceil(EQUAL_SHARES * batch_rows / num_workers), int(min(cap / longest, batch_rows)))
