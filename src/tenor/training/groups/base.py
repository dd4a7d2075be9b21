"""What a group offers. Its null case is `Alone`, so no caller ever asks whether there is one."""

from __future__ import annotations

from typing import Protocol

import torch
from torch import Tensor


class Pending(Protocol):
    def wait(self) -> object: ...


class Group(Protocol):
    rank: int
    size: int

    def start_sum(self, tensor: Tensor) -> Pending:
        """Begin to add the tensor up over all ranks, in place; every rank starts the same sums in the same order."""

    def gather(self, values: Tensor) -> Tensor:
        """Every rank's 1-D values, one after another; the ranks may have different numbers of them."""

    def start_send(self, tensor: Tensor, to: int, tag: int) -> Pending:
        """Begin to send to one rank, which receives a tensor of the same size with the same tag."""

    def start_receive(self, tensor: Tensor, source: int, tag: int) -> Pending: ...

    def split(self, colour: int) -> Group:
        """The group of those ranks that name the same colour, in the same order; every rank calls it."""

    def close(self) -> None: ...


def gather_by_sums(group: Group, values: Tensor) -> Tensor:
    """Gather with nothing but sums: each rank fills its own row of a table of zeros."""
    counts = torch.zeros(group.size, dtype=torch.int64, device=values.device)
    counts[group.rank] = len(values)
    group.start_sum(counts).wait()
    table = values.new_zeros((group.size, int(counts.max())))
    table[group.rank, : len(values)] = values
    group.start_sum(table).wait()
    return torch.cat([row[:count] for row, count in zip(table, counts.tolist(), strict=True)])
