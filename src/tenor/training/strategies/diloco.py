"""DiLoCo: local steps as in `local-sgd`, but the average is a direction for an outer optimizer with momentum.

What the workers moved since they last met, averaged, is the gradient of an outer SGD with Nesterov momentum (Douillard
et al. 2023, "DiLoCo: Distributed Low-Communication Training of Language Models"; there the inner optimizer is AdamW,
which is `--optimizer adam` with a weight decay). It stands longer stretches apart than plain averaging does; it costs a
second copy of the weights and the momentum.
"""

from __future__ import annotations

from collections.abc import Mapping

import torch
from torch import Tensor, nn

from tenor.training.groups import Group
from tenor.training.optimizers import SGD, Optimizer
from tenor.training.strategies.local_sgd import LocalSGD


class DiLoCo(LocalSGD):
    def __init__(self, every: int, outer_lr: float, outer_momentum: float) -> None:
        super().__init__(every)
        self.outer_lr = outer_lr
        self.rule = SGD(momentum=outer_momentum, nesterov=True)

    def setup(self, model: nn.Module, optimizer: Optimizer, group: Group) -> None:
        super().setup(model, optimizer, group)
        self.start = {name: weight.clone() for name, weight in optimizer.weights.items()}  # when all last met
        self.velocity = {name: torch.zeros_like(weight) for name, weight in optimizer.weights.items()}

    def _take(self, name: str, rows: Tensor | None, average: Tensor) -> None:
        start, velocity = self.start[name], self.velocity[name]
        if rows is not None:  # rows that nobody touched keep their weights and their momentum
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
            if (saved := state.get(f"velocity/{name}")) is not None:
                self.velocity[name].copy_(saved)
