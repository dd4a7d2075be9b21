"""The machines that train word vectors together: each has all the words, and tables and workers of its own.

From time to time the machines average their vectors (Ji et al. 2016). The mean of n machines moves as far as one
machine would if each of them learns n times as fast, so `scaled_rate` multiplies the learning rate.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass

import numpy as np
import torch

from tenor.embedding.workers.checkpoints import SavedProgress
from tenor.embedding.workers.tables import Floats, Tables
from tenor.errors import UsageError
from tenor.groups import Alone, Group

PIECE_BYTES = 1 << 24  # of a table that are averaged at a time
MOST_RATE = 0.1  # of a machine that averages with others; at 0.2 the vectors of frequent words grow without bounds


@dataclass(frozen=True)
class Round:
    """What all machines know after a round."""

    loss: float  # the sum, and the number of losses summed
    num_losses: float
    signal: int  # that any machine received, or 0


class Machines:
    """This machine among those of a group. With the group `Alone`, nothing is sent."""

    def __init__(self, group: Group, tables: Tables) -> None:
        self.group, self.tables = group, tables
        self.is_alone = isinstance(group, Alone)

    def check_same(self, identity: str) -> None:
        """Raise UsageError unless all machines have the same settings and the same words."""
        own = int.from_bytes(hashlib.sha256(identity.encode()).digest()[:8], "little", signed=True)
        every = self.group.gather(torch.tensor([own])).tolist()
        if other := [rank for rank, number in enumerate(every) if number != every[0]]:
            what = f"rank {other[0]} has other settings or another text than rank 0"
            raise UsageError(what, remedy="give the same options and the same text on every machine")

    def workers(self, own: int) -> list[int]:
        """The number of workers of each machine."""
        every: list[int] = self.group.gather(torch.tensor([own])).tolist()
        return every

    def meet(self) -> None:
        """Wait until all machines are here."""
        self.group.gather(torch.zeros(1))

    def start_from(self, done: SavedProgress) -> SavedProgress:
        """Give every machine the tables and the progress of the first."""
        if self.is_alone:
            return done
        if self.group.rank:
            for table in self.tables.both:
                table[:] = 0.0
        self._sum_tables()
        figures = torch.tensor([done.blocks, done.loss, done.num_losses, done.seconds], dtype=torch.float64)
        blocks, loss, num_losses, seconds = self.group.gather(figures)[:4].tolist()
        return SavedProgress(int(blocks), loss, num_losses, seconds)

    def end_round(self, loss: float, num_losses: float, signal: int) -> Round:
        """Average the vectors, add up the losses, and tell every machine of a signal to any."""
        if self.is_alone:
            return Round(loss, num_losses, signal)
        self._sum_tables()
        for table in self.tables.both:
            np.divide(table, self.group.size, out=table)
        every = self.group.gather(torch.tensor([loss, num_losses, signal], dtype=torch.float64)).view(-1, 3)
        return Round(float(every[:, 0].sum()), float(every[:, 1].sum()), int(every[:, 2].max()))

    def _sum_tables(self) -> None:
        for table in self.tables.both:
            for piece in _pieces(table):
                self.group.start_sum(torch.from_numpy(piece)).wait()


def scaled_rate(rate: float, num_machines: int) -> float:
    """The learning rate of each machine."""
    return rate if num_machines == 1 else max(rate, min(MOST_RATE, rate * num_machines))


def _pieces(table: Floats) -> list[Floats]:
    height = max(1, PIECE_BYTES // (4 * table.shape[1]))
    return [table[first : first + height] for first in range(0, len(table), height)]
