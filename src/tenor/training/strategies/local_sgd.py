"""Local SGD: every worker steps on its own part of each global batch; every K steps the weights are averaged.

The workers exchange one message in K steps instead of K, which suits slow networks (Stich 2019, "Local SGD Converges
Fast and Communicates Little"). Between averages the weights of the workers differ, so the result is not that of one
process. An average weights each worker by the samples it has seen: with K = 1, plain SGD and no clipping, the update is
that of `allreduce`, to rounding. Each worker's optimizer keeps its own state. Of embedding tables, only the rows that
were touched since the last average travel.
"""

from __future__ import annotations

import time
from collections.abc import Mapping

import torch
from torch import Tensor, nn

from tenor.groups import Group, estimate_ring_bytes
from tenor.training.batch import TrainBatch
from tenor.training.optim.optimizers import Optimizer
from tenor.training.settings import TrainSettings
from tenor.training.strategies.base import Strategy, SyncStats
from tenor.training.strategies.worker_state import gather_state, restore_state
from tenor.training.tasks.losses import Objective
from tenor.world import World


class LocalSGD(Strategy):
    def __init__(self, every: int) -> None:
        self.every = every
        self.since = 0  # steps since the last average

    @classmethod
    def make(cls, settings: TrainSettings, world: World) -> Strategy:
        return cls(settings.sync_every)

    @property
    def is_settled(self) -> bool:
        return self.since == 0

    def setup(self, model: nn.Module, optimizer: Optimizer, group: Group) -> None:
        super().setup(model, optimizer, group)
        self.touched = {name: torch.zeros(len(optimizer.weights[name]), dtype=torch.bool) for name in optimizer.tables}

    def compute(self, batch: TrainBatch, objective: Objective) -> tuple[float, float]:
        for name, touched in self.touched.items():
            touched[batch.rows_of(name).cpu()] = True
        return super().compute(batch, objective)

    def settle(self, tallies: Tensor, now: bool = False) -> SyncStats:
        self.since += not now
        if self.since < self.every and not now:
            return SyncStats()
        self.since = 0
        began = time.perf_counter()
        payload = self._average(tallies)
        return SyncStats(estimate_ring_bytes(payload, self.group.size), time.perf_counter() - began)

    @torch.no_grad()
    def _average(self, tallies: Tensor) -> int:
        """Average the weights, each worker weighted by its samples since the last average; return the bytes summed."""
        own = float(tallies[1])
        summed = tallies.to(next(iter(self.optimizer.weights.values())).device)  # the group adds up on this device
        self.group.start_sum(summed).wait()
        tallies.copy_(summed)
        share = own / float(tallies[1]) if tallies[1] else 1.0 / self.group.size
        moved = {name: self._moved_rows(name) for name in self.optimizer.weights}
        parts = [self._select(name, rows) for name, rows in moved.items()]
        flat = torch.cat([part.flatten() for part in parts]).mul_(share)
        self.group.start_sum(flat).wait()
        averages = flat.split([part.numel() for part in parts])
        for (name, rows), part, average in zip(moved.items(), parts, averages, strict=True):
            self._take(name, rows, average.view_as(part))
        for touched in self.touched.values():
            touched.zero_()
        return flat.nbytes + tallies.nbytes

    def _moved_rows(self, name: str) -> Tensor | None:
        """The rows of a table that may differ between workers; None for a weight that may differ as a whole."""
        if name not in self.touched:
            return None
        return self.touched[name].nonzero()[:, 0].to(self.optimizer.weights[name].device)

    def _select(self, name: str, rows: Tensor | None) -> Tensor:
        weight = self.optimizer.weights[name]
        return weight if rows is None else weight.index_select(0, rows)

    def _take(self, name: str, rows: Tensor | None, average: Tensor) -> None:
        """Continue from the average."""
        weight = self.optimizer.weights[name]
        if rows is None:
            weight.copy_(average)
        else:
            weight.index_copy_(0, rows, average)

    def state_dict(self) -> dict[str, Tensor]:
        return gather_state(self.optimizer, self.group)

    def load_state_dict(self, state: Mapping[str, Tensor]) -> None:
        restore_state(self.optimizer, self.group, state)
