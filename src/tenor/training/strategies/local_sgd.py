"""Local SGD: every worker steps on its own part of each global batch, and every K steps the weights are averaged.

One message in K steps instead of K, for networks that are slow (Stich 2019, "Local SGD Converges Fast and Communicates
Little"). Between averages the workers' weights go apart, so the result is not that of one process. Averages count each
worker by the samples it saw: with K = 1, plain SGD and no clipping the update is that of `allreduce`, to rounding. Each
worker's optimizer keeps state of its own. Of embedding tables only the rows touched since the last average travel.
"""

from __future__ import annotations

import time
from collections.abc import Mapping

import torch
from torch import Tensor, nn

from tenor.models.batch import Batch
from tenor.training.groups import Group
from tenor.training.losses import Objective
from tenor.training.optimizers import Optimizer
from tenor.training.strategies.base import SyncStats, backpropagate, divide_gradients
from tenor.training.strategies.private import gather_state, restore_state


class LocalSGD:
    waited_inside = 0.0

    def __init__(self, every: int) -> None:
        self.every = every
        self.since = 0  # steps since the last average

    @property
    def is_settled(self) -> bool:
        return self.since == 0

    def setup(self, model: nn.Module, optimizer: Optimizer, group: Group) -> None:
        self.model, self.optimizer, self.group = model, optimizer, group
        self.touched = {name: torch.zeros(len(optimizer.weights[name]), dtype=torch.bool) for name in optimizer.tables}

    def compute(self, batch: Batch, objective: Objective) -> tuple[float, float]:
        for touched in self.touched.values():
            assert batch.rows is not None
            touched[batch.rows.cpu()] = True
        return backpropagate(self.model, self.optimizer, batch, objective)

    def exchange(self, tallies: Tensor) -> SyncStats:
        divide_gradients(self.optimizer, float(tallies[1]))
        return SyncStats()

    def apply(self, lr: float) -> None:
        self.optimizer.step(lr)

    def settle(self, tallies: Tensor, now: bool = False) -> SyncStats:
        self.since += not now
        if self.since < self.every and not now:
            return SyncStats()
        self.since = 0
        began = time.perf_counter()
        payload = self._average(tallies)
        size = self.group.size  # a ring sends each byte twice, less the part a rank already has
        return SyncStats(2 * payload * (size - 1) // size, time.perf_counter() - began)

    @torch.no_grad()
    def _average(self, tallies: Tensor) -> int:
        """Every worker's weights, counted by its samples since the last time; the bytes that were summed."""
        own = float(tallies[1])
        summed = tallies.to(next(iter(self.optimizer.weights.values())).device)  # where the group can add up
        self.group.start_sum(summed).wait()
        tallies.copy_(summed)
        share = own / float(tallies[1]) if tallies[1] else 1.0 / self.group.size
        moved = {name: self._moved(name) for name in self.optimizer.weights}
        parts = [self._part(name, rows) for name, rows in moved.items()]
        flat = torch.cat([part.flatten() for part in parts]).mul_(share)
        self.group.start_sum(flat).wait()
        averages = flat.split([part.numel() for part in parts])
        for (name, rows), part, average in zip(moved.items(), parts, averages, strict=True):
            self._take(name, rows, average.view_as(part))
        for touched in self.touched.values():
            touched.zero_()
        return flat.nbytes + tallies.nbytes

    def _moved(self, name: str) -> Tensor | None:
        """The rows of a table that may differ between workers; None for a weight that may as a whole."""
        if name not in self.touched:
            return None
        return self.touched[name].nonzero()[:, 0].to(self.optimizer.weights[name].device)

    def _part(self, name: str, rows: Tensor | None) -> Tensor:
        weight = self.optimizer.weights[name]
        return weight if rows is None else weight.index_select(0, rows)

    def _take(self, name: str, rows: Tensor | None, average: Tensor) -> None:
        """Go on from the average."""
        weight = self.optimizer.weights[name]
        if rows is None:
            weight.copy_(average)
        else:
            weight.index_copy_(0, rows, average)

    def state_dict(self) -> dict[str, Tensor]:
        return gather_state(self.optimizer, self.group)

    def load_state_dict(self, state: Mapping[str, Tensor]) -> None:
        restore_state(self.optimizer, self.group, state)
