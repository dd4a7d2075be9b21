"""DiLoCo: local steps as in `local-sgd`, but the average gives a direction for an outer optimizer with momentum.

The average movement of the workers since they last met is the gradient of an outer SGD with Nesterov momentum
(Douillard et al. 2023, "DiLoCo: Distributed Low-Communication Training of Language Models"; its inner optimizer is
AdamW, which is `--optimizer adam` with a weight decay). It tolerates more steps between meetings than plain averaging.
The price is a second copy of the weights, and the momentum.
"""

from __future__ import annotations

from collections.abc import Mapping

import torch
from torch import Tensor, nn

from tenor.groups import Group
from tenor.models.weights import copy_saved
from tenor.training.optim.optimizers import SGD, Optimizer
from tenor.training.settings import TrainSettings
from tenor.training.strategies.base import Strategy
from tenor.training.strategies.local_sgd import LocalSGD
from tenor.world import World


class DiLoCo(LocalSGD):
    def __init__(self, every: int, outer_lr: float, outer_momentum: float) -> None:
        super().__init__(every)
        self.outer_lr = outer_lr
        self.rule = SGD(momentum=outer_momentum, nesterov=True)

    @classmethod
    def make(cls, settings: TrainSettings, world: World) -> Strategy:
        return cls(settings.sync_every, settings.outer_lr, settings.outer_momentum)

    def setup(self, model: nn.Module, optimizer: Optimizer, group: Group) -> None:
        super().setup(model, optimizer, group)
        self.start = {name: weight.clone() for name, weight in optimizer.weights.items()}  # at the last meeting
        self.velocity = {name: torch.zeros_like(weight) for name, weight in optimizer.weights.items()}

    def _take(self, name: str, rows: Tensor | None, average: Tensor) -> None:
        start, velocity = self.start[name], self.velocity[name]
        if rows is not None:  # rows that no worker touched keep their weights and their momentum
            start, velocity = start.index_select(0, rows), velocity.index_select(0, rows)
        self.rule.update(start, start - average, {"velocity": velocity}, 0, self.outer_lr)
        super()._take(name, rows, start)
        if rows is not None:
            self.start[name].index_copy_(0, rows, start)
            self.velocity[name].index_copy_(0, rows, velocity)

    def state_dict(self) -> dict[str, Tensor]:
        outer = {f"velocity/{name}": value for name, value in self.velocity.items()}
        return {**super().state_dict(), **outer}

    def load_state_dict(self, state: Mapping[str, Tensor]) -> None:
        super().load_state_dict(state)
        for name, weight in self.optimizer.weights.items():
            self.start[name].copy_(weight)
            if (key := f"velocity/{name}") in state:
                copy_saved(self.velocity[name], state, key)
