"""One process, nobody to agree with: the null case, and the reference the others are compared with."""

from __future__ import annotations

from torch import Tensor, nn

from tenor.models.batch import Batch
from tenor.training.groups import Group
from tenor.training.losses import Objective
from tenor.training.optimizers import Optimizer
from tenor.training.strategies.base import InStep, SyncStats, backpropagate, divide_gradients


class Single(InStep):
    def setup(self, model: nn.Module, optimizer: Optimizer, group: Group) -> None:
        self.model, self.optimizer = model, optimizer

    def compute(self, batch: Batch, objective: Objective) -> tuple[float, float]:
        return backpropagate(self.model, self.optimizer, batch, objective)

    def exchange(self, tallies: Tensor) -> SyncStats:
        divide_gradients(self.optimizer, float(tallies[1]))
        return SyncStats()

    def apply(self, lr: float) -> None:
        self.optimizer.step(lr)
