"""The protocol behind which workers agree. A strategy never owns the loop; clipping and checkpoints stay outside."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

from torch import Tensor, nn

from tenor.models.batch import Batch
from tenor.training.groups import Group
from tenor.training.losses import Objective
from tenor.training.optimizers import Optimizer


@dataclass(frozen=True)
class SyncStats:
    """What agreeing cost this worker in one step."""

    bytes_sent: int = 0
    wait_seconds: float = 0.0


class Strategy(Protocol):
    def setup(self, model: nn.Module, optimizer: Optimizer, group: Group) -> None: ...

    def compute(self, batch: Batch, objective: Objective) -> tuple[float, float]:
        """Forward and backward over this worker's samples: the sum of losses and the sum of weights."""

    def exchange(self, tallies: Tensor) -> SyncStats:
        """Agree on the gradient. `tallies` are small numbers summed over the workers in place; the first is the sum
        of losses, the second the sum of weights, by which the summed gradient is divided once."""

    def apply(self, lr: float) -> None:
        """The optimizer's step."""


def backpropagate(model: nn.Module, optimizer: Optimizer, batch: Batch, objective: Objective) -> tuple[float, float]:
    """The gradient of the *sum* of losses, left in place; an empty share leaves zeros."""
    optimizer.zero_gradients()
    for table in optimizer.tables.values():
        assert batch.rows is not None
        table.focus(batch.rows)
    if len(batch) == 0:
        return 0.0, 0.0
    loss, weight = objective(model(batch), batch.labels)
    loss.backward()
    return float(loss.detach()), float(weight)
