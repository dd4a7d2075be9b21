"""Who shares what: the ranks of a row hold one model together, those of a column the same part of it.

Without model parallelism every rank is a row of its own, and the column is everybody.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import torch

from tenor.training.groups import Alone, Group
from tenor.training.optimizers import Optimizer


@dataclass(frozen=True)
class Grid:
    row: Group
    column: Group  # its rank says which part of each batch this rank computes, as do all of its row

    @property
    def counts(self) -> bool:
        """Whether this rank speaks for its row, whose samples are to be counted once."""
        return self.row.rank == 0

    def whole_norm(self, own: float) -> float:
        """The norm over the row of what each of its ranks has a part of."""
        if self.row.size == 1:
            return own
        squares = torch.tensor([own * own], dtype=torch.float64)
        self.row.start_sum(squares).wait()
        return math.sqrt(float(squares))


def make_grid(group: Group, depth: int) -> Grid:
    """Rows of `depth` ranks that follow each other."""
    if depth == 1:
        return Grid(Alone(), group)
    if depth == group.size:
        return Grid(group, Alone())
    return Grid(group.split(group.rank // depth), group.split(group.rank % depth))


@torch.no_grad()
def complete_weights(optimizer: Optimizer, row: Group) -> None:
    """Give every rank of a row the weights that the others have been updating."""
    if row.size == 1:
        return
    for name, weight in optimizer.weights.items():
        if name not in optimizer.own:
            weight.zero_()
        row.start_sum(weight).wait()
