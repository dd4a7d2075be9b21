"""The protocol behind which workers agree. A strategy never owns the loop; clipping and checkpoints stay outside."""

from __future__ import annotations

from collections.abc import Callable
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


def backpropagate(
    model: nn.Module,
    optimizer: Optimizer,
    batch: Batch,
    objective: Objective,
    before_last: Callable[[], None] = lambda: None,
) -> tuple[float, float]:
    """The gradient of the *sum* of losses, left in place; an empty share leaves zeros. Micro-batches add up; with the
    last of them gradients become whole, so `before_last` is called before it."""
    optimizer.zero_gradients()
    for table in optimizer.tables.values():
        assert batch.rows is not None
        table.focus(batch.rows)
    if len(batch) == 0:
        return 0.0, 0.0
    losses, weights, pieces = 0.0, 0.0, list(batch.pieces()) if batch.num_pieces > 1 else [batch]
    for index, piece in enumerate(pieces):
        if index == len(pieces) - 1:
            before_last()
        loss, weight = objective(model(piece), piece.labels)
        loss.backward()
        losses, weights = losses + float(loss.detach()), weights + float(weight)
    return losses, weights
