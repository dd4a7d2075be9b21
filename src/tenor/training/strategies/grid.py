"""The grid of ranks: the ranks of a row hold one model together, those of a column hold the same part of it.

Without model parallelism, every rank is a row of its own and all ranks form one column.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import torch

from tenor.groups import Alone, Group
from tenor.training.optim.optimizers import Optimizer


@dataclass(frozen=True)
class Grid:
    row: Group
    column: Group  # its rank is the number of the share of each batch that the whole row computes

    @property
    def is_counted(self) -> bool:
        """Whether this rank reports the samples of its row, which must be counted once."""
        return self.row.rank == 0

    def whole_norm(self, own: float) -> float:
        """The norm of a vector over the row, from the norm of this rank's part."""
        if self.row.size == 1:
            return own
        squares = torch.tensor([own * own], dtype=torch.float64)
        self.row.start_sum(squares).wait()
        return math.sqrt(float(squares))


def make_grid(group: Group, depth: int) -> Grid:
    """Rows of `depth` consecutive ranks."""
    if depth == 1:
        return Grid(Alone(), group)
    if depth == group.size:
        return Grid(group, Alone())
    return Grid(group.split(group.rank // depth), group.split(group.rank % depth))


@torch.no_grad()
def complete_weights(optimizer: Optimizer, row: Group) -> None:
    """Give every rank of a row the weights that the other ranks update."""
    if row.size == 1:
        return
    for name, weight in optimizer.weights.items():
        if name not in optimizer.own:
            weight.zero_()
        row.start_sum(weight).wait()
