"""The protocol behind which workers agree. A strategy never owns the loop; clipping and checkpoints stay outside."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, fields
from typing import Protocol

from torch import Tensor, nn

from tenor.models.batch import Batch
from tenor.training.groups import Group
from tenor.training.losses import Objective
from tenor.training.optimizers import Optimizer


@dataclass(frozen=True)
class SyncStats:
    """What agreeing cost this worker."""

    bytes_sent: int = 0
    wait_seconds: float = 0.0
    bytes_saved: int = 0  # that compression kept from being sent
    staleness: int = 0  # updates between the weights that a gradient was computed with and those it was applied to
    requeued: int = 0  # leases that had to be granted again
    leases: tuple[tuple[int, ...], ...] = ()  # applied: (worker, sequence number, batch, part)

    def __add__(self, other: SyncStats) -> SyncStats:
        """Everything adds up, but that of two gradients the later one tells how late they are."""
        sums = {field.name: getattr(self, field.name) + getattr(other, field.name) for field in fields(self)}
        return SyncStats(**{**sums, "staleness": max(self.staleness, other.staleness)})


class Strategy(Protocol):
    """A step is compute, exchange, apply, settle. Between two settlements the workers may go apart."""

    @property
    def is_settled(self) -> bool:
        """Whether all workers hold the same weights and know the same sums; they do at the same steps."""

    @property
    def waited_inside(self) -> float:
        """The seconds of the last `compute` that this worker waited for others."""

    def setup(self, model: nn.Module, optimizer: Optimizer, group: Group) -> None: ...

    def compute(self, batch: Batch, objective: Objective) -> tuple[float, float]:
        """Forward and backward over this worker's samples: the sum of losses and the sum of weights."""

    def exchange(self, tallies: Tensor) -> SyncStats:
        """Make the gradient the one to apply. `tallies` are small numbers of this step; the first is the sum of
        losses, the second the sum of weights. Where the workers agree on the gradient, both are summed over them:
        the tallies in place, the gradient divided once by the sum of weights."""

    def apply(self, lr: float) -> None:
        """The optimizer's step."""

    def settle(self, tallies: Tensor, now: bool = False) -> SyncStats:
        """Come together again when it is time, or `now`. `tallies` are those since the last settlement; where
        `exchange` did not sum them, this does."""

    def state_dict(self) -> dict[str, Tensor]:
        """What a checkpoint needs beyond weights and the first worker's optimizer; every worker calls it."""

    def load_state_dict(self, state: Mapping[str, Tensor]) -> None:
        """Go on from a checkpoint, whose weights are in the model already."""


class InStep:
    """What a strategy need not say whose workers agree in every step."""

    is_settled = True
    waited_inside = 0.0

    def settle(self, tallies: Tensor, now: bool = False) -> SyncStats:
        return SyncStats()

    def state_dict(self) -> dict[str, Tensor]:
        return {}

    def load_state_dict(self, state: Mapping[str, Tensor]) -> None:
        pass


def backpropagate(
    model: nn.Module,
    optimizer: Optimizer,
    batch: Batch,
    objective: Objective,
    before_last: Callable[[], None] = lambda: None,
) -> tuple[float, float]:
    """The gradient of the *sum* of losses, left in place; an empty share leaves zeros. Micro-batches add up; with the
    last of them gradients become whole, so `before_last` is called before it."""
    begin_gradients(optimizer, batch)
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


def begin_gradients(optimizer: Optimizer, batch: Batch) -> None:
    """Forget those of the step before, and lift the rows of tables that this step touches."""
    optimizer.zero_gradients()
    for table in optimizer.tables.values():
        assert batch.rows is not None
        table.focus(batch.rows)


def divide_gradients(optimizer: Optimizer, weight: float) -> None:
    """From a sum to a mean; a worker without samples keeps its zeros."""
    for _, gradient in optimizer.gradients():
        gradient.div_(weight or 1.0)
