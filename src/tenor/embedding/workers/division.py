"""Which blocks of words each machine trains on, and after which blocks machines average their vectors."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass


@dataclass(frozen=True)
class Division:
    """The blocks of this machine, in the order in which its workers take them; a free worker takes the next one.

    From every `step` blocks, the machine has the `size` blocks that follow the first `offset`.

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

    def block(self, place: int) -> int:
        """The number of this machine's block at a place in its order."""
        return self.first + place // self.size * self.step + self.offset + place % self.size

    def num_blocks(self, end: int) -> int:
        """How many blocks below `end` this machine trains on."""
        whole, rest = divmod(max(0, end - self.first), self.step)
        return whole * self.size + min(max(0, rest - self.offset), self.size)

    def rounds(self, total: int, blocks_each: int) -> Iterator[int]:
        """The ends of the rounds with `blocks_each` blocks for each worker; the last is `total`."""
        yield from range(self.first + self.step * blocks_each, total, self.step * blocks_each)
        yield total
