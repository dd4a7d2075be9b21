"""The order of batches: global batch k of an epoch is a pure function of (seed, epoch, k), whatever the workers.

An epoch shuffles blocks of neighbouring rows and cuts the sequence into windows of many batches. Each window is
shuffled, sorted by length and cut into batches, which are shuffled too. So the rows of a batch have similar lengths and
need little padding, a corpus larger than memory is read almost sequentially, and any batch can be computed directly. A
corpus that fits into one window is shuffled as a whole.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property, lru_cache

import numpy as np
from numpy.typing import NDArray

from tenor.compiled import compiled, inlined

BLOCK = 4096  # neighbouring rows that stay together until their window is shuffled
WINDOW = 1 << 18  # rows that are shuffled and sorted by length together

Rows = NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class Order:
    """The batches of every epoch over rows of the given lengths."""

    lengths: NDArray[np.int32]
    batch_size: int
    seed: int
    window: int = WINDOW
    block: int = BLOCK

    @property
    def num_rows(self) -> int:
        return len(self.lengths)

    @property
    def num_batches(self) -> int:
        return -(-self.num_rows // self.batch_size)

    @property
    def _batches_per_window(self) -> int:
        return max(1, self.window // self.batch_size)

    @cached_property
    def _window(self) -> Callable[[int, int], tuple[Rows, Rows]]:
        return lru_cache(maxsize=2)(self._arrange)

    def batch(self, epoch: int, k: int) -> Rows:
        """The rows of batch k, longest first."""
        number, within = divmod(k, self._batches_per_window)
        rows, starts = self._window(epoch, number)
        start = starts[within]
        batch: Rows = rows[start : start + self.batch_size]
        return batch

    def longest_batch(self) -> NDArray[np.int32]:
        """Descending lengths of rows, such that every epoch has a batch whose rows are at least as long, row by row.

        If the corpus fits into one window, these are the lengths of its longest batch. Otherwise: one of w windows has
        at least n of the w × (n − 1) + 1 longest rows, so some batch of n rows is at least as long as the shortest of
        them.
        """
        windows = -(-self.num_batches // self._batches_per_window)
        size = min(self.batch_size, self.num_rows)
        count = min(windows * (size - 1) + 1, self.num_rows)
        longest = np.sort(np.partition(self.lengths, self.num_rows - count)[self.num_rows - count :])[::-1]
        return longest if windows == 1 else np.repeat(longest[-1:], size)

    def _arrange(self, epoch: int, number: int) -> tuple[Rows, Rows]:
        """The rows of a window by descending length, and where each of its batches starts among them."""
        span = self._batches_per_window * self.batch_size
        rows = self._sequence(epoch, number * span, min((number + 1) * span, self.num_rows))
        rng = np.random.Generator(np.random.Philox(key=[self.seed, (epoch << 32) + number + 1]))
        rng.shuffle(rows)
        rows = rows[np.argsort(-self.lengths[rows].astype(np.int64), kind="stable")]
        starts = np.arange(0, len(rows), self.batch_size)
        rng.shuffle(starts)
        return rows, starts

    def _sequence(self, epoch: int, start: int, stop: int) -> Rows:
        """Rows at positions start…stop of the epoch's sequence of shuffled blocks."""
        num_blocks = -(-self.num_rows // self.block)
        blocks = np.random.Generator(np.random.Philox(key=[self.seed, epoch << 32])).permutation(num_blocks)
        ends = np.cumsum(np.minimum(self.block, self.num_rows - blocks * self.block))
        first, last = np.searchsorted(ends, [start, stop - 1], side="right")
        rows = [np.arange(b * self.block, min((b + 1) * self.block, self.num_rows)) for b in blocks[first : last + 1]]
        skipped = start - (int(ends[first - 1]) if first else 0)
        return np.concatenate(rows)[skipped : skipped + stop - start]


def split(lengths: NDArray[np.int32], shares: NDArray[np.float64]) -> list[slice]:
    """Cut a batch into one slice per worker, so that the padded tokens of the slices are proportional to the shares.

    A slice costs its number of rows × its longest row. Bisection finds the smallest budget with which every row gets a
    place. A share of 0 gives an empty slice.

    Args:
        lengths: Lengths of the rows, in descending order.
        shares: One share per worker.
    """
    parts = np.asarray(shares, dtype=np.float64) / np.sum(shares)
    ends = _split(np.maximum(lengths, 1), parts).tolist()
    return [slice(start, end) for start, end in zip([0, *ends[:-1]], ends, strict=True)]


@compiled
def _split(lengths: NDArray[np.int32], shares: NDArray[np.float64]) -> Rows:
    """Where the slice of each worker ends."""
    ends = np.zeros(len(shares), np.int64)
    low, high = 0.0, 2.0 * lengths[0] * (len(lengths) + 1) / shares.max()
    for _ in range(40):
        middle = (low + high) / 2
        if _cut(lengths, shares, middle, ends) == len(lengths):
            high = middle
        else:
            low = middle
    _cut(lengths, shares, high, ends)
    return ends


@inlined
def _cut(lengths: NDArray[np.int32], shares: NDArray[np.float64], budget: float, ends: Rows) -> int:
    """Give one worker after another rows up to its share of the budget; returns the end of the last slice."""
    at, rows = 0, len(lengths)
    for worker in range(len(shares)):
        if at < rows:
            at = min(rows, at + int(shares[worker] * budget / lengths[at]))
        ends[worker] = at
    return at
