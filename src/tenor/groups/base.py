"""The protocol of a group of processes. `Alone` is the group of one, so callers need no special case for it."""

from __future__ import annotations

from typing import Protocol

import torch
from torch import Tensor


class Pending(Protocol):
    """A message under way."""

    def wait(self) -> object: ...


class Group(Protocol):
    rank: int
    size: int

    def start_sum(self, tensor: Tensor) -> Pending:
        """Begin to add up a tensor over all ranks, in place. Every rank starts the same sums in the same order."""

    def gather(self, values: Tensor) -> Tensor:
        """The 1-D values of all ranks, one after another. The ranks may have different numbers of values."""

    def start_send(self, tensor: Tensor, to: int, tag: int) -> Pending:
        """Begin to send to one rank, which must receive a tensor of the same size with the same tag."""

    def start_receive(self, tensor: Tensor, source: int, tag: int) -> Pending:
        """Begin to receive into a tensor, which is valid after `wait`."""

    def split(self, colour: int) -> Group:
        """The group of the ranks that pass the same colour, in the same order. Every rank must call it."""

    def close(self) -> None: ...

    def abandon(self, exit_code: int) -> None:
        """Instead of `close`, after an error of this process alone: it will end without waiting for the others."""


def gather_by_sums(group: Group, values: Tensor) -> Tensor:
    """Gather by sums alone: each rank fills its own row of a table of zeros."""
    counts = torch.zeros(group.size, dtype=torch.int64, device=values.device)
    counts[group.rank] = len(values)
    group.start_sum(counts).wait()
    table = values.new_zeros((group.size, int(counts.max())))
    table[group.rank, : len(values)] = values
    group.start_sum(table).wait()
    return torch.cat([row[:count] for row, count in zip(table, counts.tolist(), strict=True)])


def estimate_ring_bytes(payload: int, size: int) -> int:
    """Estimate the bytes that one of `size` ranks sends to add up `payload` bytes over all ranks.

    In a ring all-reduce, a rank sends each byte twice, except for the part that it holds itself. The real number may
    differ: a back end may use another algorithm, and through shared memory nothing is sent.
    """
    return 2 * payload * (size - 1) // size
