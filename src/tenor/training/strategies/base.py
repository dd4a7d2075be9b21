"""The base class of all strategies: how workers agree on an update.

A strategy plugs into the loop and never owns it; clipping, the finite check, checkpoints and logging stay in the loop.
A step calls compute, exchange, apply and settle, in this order. The defaults are those of one process, so a strategy
overrides only what it does differently.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass, fields
from typing import Any

from torch import Tensor, nn

from tenor.groups import Group
from tenor.training.balancing.slowdown import Pace
from tenor.training.batch import TrainBatch
from tenor.training.gradients import backpropagate, divide_gradients
from tenor.training.loader import Ahead
from tenor.training.optim.optimizers import Optimizer
from tenor.training.profiling.spans import LOAD, OFF, Profiler
from tenor.training.settings import TrainSettings
from tenor.training.strategies.grid import Grid, make_grid
from tenor.training.tasks.base import Task
from tenor.training.tasks.losses import Objective
from tenor.world import World


@dataclass(frozen=True)
class SyncStats:
    """The cost of agreeing, for one worker."""

    bytes_sent: int = 0  # estimated for sums over all workers, see `estimate_ring_bytes`
    wait_seconds: float = 0.0
    bytes_saved: int = 0  # bytes that compression avoided
    staleness: int = 0  # updates between the weights that a gradient was computed with and those it was applied to
    requeued: int = 0  # leases that were granted again
    leases: tuple[tuple[int, ...], ...] = ()  # applied leases: (worker, sequence number, batch, part)

    def __add__(self, other: SyncStats) -> SyncStats:
        """The sum of all fields, but the larger staleness."""
        sums = {field.name: getattr(self, field.name) + getattr(other, field.name) for field in fields(self)}
        return SyncStats(**{**sums, "staleness": max(self.staleness, other.staleness)})


class Strategy:
    """One process by default. Between two settlements the weights of the workers may differ."""

    model: nn.Module
    optimizer: Optimizer
    group: Group
    grid: Grid  # which ranks share a model, and which the same part of it

    waited_inside = 0.0  # seconds that the last `compute` waited for other workers
    signal = 0  # a signal that some other worker received
    profile: Profiler = OFF  # records what this process does when
    feeding = LOAD  # what the loop does until `feed` gives the next batch
    is_client = False  # whether this rank computes for a server, in `run_client`, and runs no loop
    measures_noise = False  # whether the workers agree on a gradient in every step, which theirs can be compared with
    resumes_scattered = False  # whether a resumed epoch may leave out any set of batches, not only the first ones

    @property
    def is_settled(self) -> bool:
        """Whether all workers hold the same weights and know the same sums. All ranks settle after the same steps."""
        return True

    @classmethod
    def make(cls, settings: TrainSettings, world: World) -> Strategy:
        """The strategy of one rank, from the settings of the run."""
        return cls()

    def setup(self, model: nn.Module, optimizer: Optimizer, group: Group) -> None:
        """Receive what the strategy works on; called once, before the first step."""
        self.model, self.optimizer, self.group = model, optimizer, group
        self.grid = make_grid(group, 1)

    def feed(
        self, load: Callable[[int], TrainBatch], epoch: int, start: int, stop: int
    ) -> AbstractContextManager[Iterable[TrainBatch]]:
        """The batches `start` to `stop - 1` of an epoch; by default, a thread loads them ahead."""
        return Ahead(load, start, stop)

    def compute(self, batch: TrainBatch, objective: Objective) -> tuple[float, float]:
        """Run forward and backward over this worker's samples; return the sum of losses and the sum of weights."""
        return backpropagate(self.model, self.optimizer, batch, objective, profile=self.profile)

    def exchange(self, tallies: Tensor) -> SyncStats:
        """Make the gradient the one to apply.

        Args:
            tallies: Small numbers of this step. The first is the sum of losses, the second the sum of weights. A
                strategy whose workers agree on the gradient adds both up over the workers: the tallies in place, and
                the gradient, which it then divides once by the sum of weights.
        """
        divide_gradients(self.optimizer, float(tallies[1]))
        return SyncStats()

    def apply(self, lr: float) -> None:
        """Update the weights."""
        self.optimizer.step(lr)

    def settle(self, tallies: Tensor, now: bool = False) -> SyncStats:
        """Bring the workers together when it is time, or at once if `now` is set.

        Args:
            tallies: The sums of this worker since the last settlement. If `exchange` did not add them up over the
                workers, this method does, in place.
            now: Whether to settle at once, as at the end of an epoch.
        """
        return SyncStats()

    def state_dict(self) -> dict[str, Tensor]:
        """What a checkpoint needs beyond the weights and the optimizer of rank 0. Every rank calls it."""
        return {}

    def load_state_dict(self, state: Mapping[str, Tensor]) -> None:
        """Continue from a checkpoint whose weights are already in the model."""

    def end(self, result: dict[str, Any] | None = None, error: BaseException | None = None) -> None:
        """The run is over, with a result or an error; called once on the ranks that run the loop."""

    def run_client(self, task: Task, model: nn.Module, pace: Pace, signalled: Callable[[], int]) -> dict[str, Any]:
        """Compute for a server until the run is over; return the result of the run."""
        raise NotImplementedError
