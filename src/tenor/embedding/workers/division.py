"""Which blocks of words each worker trains on, and after which blocks machines average their vectors."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass


@dataclass(frozen=True)
class Division:
    """The blocks of this machine's workers: worker i has the block first + offset + i, then every step-th.

    Attributes:
        first: The first block that nobody has trained on yet, over all epochs.
        offset: The workers of the machines before this one.
        size: The workers of this machine.
        step: The workers of all machines.
    """

    first: int
    offset: int
    size: int
    step: int

    def blocks_of(self, worker: int, end: int) -> range:
        """The blocks below `end` of one worker of this machine."""
        return range(self.first + self.offset + worker, end, self.step)

    def num_blocks(self, end: int) -> int:
        """How many blocks below `end` this machine trains on."""
        return sum(len(self.blocks_of(worker, end)) for worker in range(self.size))

    def rounds(self, total: int, blocks_each: int) -> Iterator[int]:
        """The ends of the rounds in which each worker trains on `blocks_each` blocks; the last is `total`."""
        yield from range(self.first + self.step * blocks_each, total, self.step * blocks_each)
        yield total
