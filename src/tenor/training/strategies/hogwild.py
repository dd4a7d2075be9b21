"""Hogwild: the workers of one machine update the same weights in shared memory, without locks.

Each worker computes on its own part of each global batch and writes its update at once, on top of whatever the others
have written in the meantime; occasionally, the update of a single number is lost (Recht et al. 2011, "Hogwild!: A
Lock-Free Approach to Parallelizing Stochastic Gradient Descent"). No worker waits and no gradient is sent, so it beats
`allreduce` where steps are short. Results repeat only approximately, because the updates have no fixed order. As in
fastText, the weights are shared and everything else is private, including the optimizer's state. A worker divides its
gradient by the sum of its own class weights and scales its learning rate by its share of the whole batch's sum. So the
steps of the workers add up to the step of one process: exactly with plain SGD, as long as no other worker writes in
between. Every K steps the workers meet to count, to stop and to save.
"""

from __future__ import annotations

import time
from collections.abc import Mapping
from pathlib import Path

import torch
from torch import Tensor, nn

from tenor.errors import UsageError
from tenor.groups import Group, estimate_ring_bytes
from tenor.training.batch import TrainBatch
from tenor.training.optim.optimizers import Optimizer
from tenor.training.profiling.spans import WAIT
from tenor.training.settings import TrainSettings
from tenor.training.strategies.base import Strategy, SyncStats
from tenor.training.strategies.worker_state import gather_state, restore_state
from tenor.training.tasks.losses import Objective
from tenor.world import World


class Hogwild(Strategy):
    def __init__(self, every: int, memory: Path | None) -> None:
        self.every, self.memory = every, memory
        self.since = 0  # steps since the last meeting
        self.has_met = True  # whether no worker has written since the last meeting

    @classmethod
    def make(cls, settings: TrainSettings, world: World) -> Strategy:
        return cls(settings.sync_every, shared_memory(world))

    @property
    def is_settled(self) -> bool:
        return self.since == 0

    def setup(self, model: nn.Module, optimizer: Optimizer, group: Group) -> None:
        super().setup(model, optimizer, group)
        if self.memory is not None:
            self._share(model, self.memory)

    @torch.no_grad()
    def _share(self, model: nn.Module, file: Path) -> None:
        """Put the weights into a file that all workers map. Every worker writes the same initial values."""
        parameters = dict(model.named_parameters())
        first = next(iter(parameters.values()))
        if first.device.type != "cpu":
            raise UsageError("--strategy hogwild works on CPUs only", remedy="add --device cpu")
        size = sum(parameter.numel() for parameter in parameters.values())
        flat = torch.from_file(str(file), shared=True, size=size, dtype=first.dtype)
        views = flat.split([parameter.numel() for parameter in parameters.values()])
        for (name, parameter), view in zip(parameters.items(), views, strict=True):
            shared = view.view_as(parameter)
            shared.copy_(parameter)
            parameter.data = shared
            self.optimizer.weights[name] = parameter.detach()

    def compute(self, batch: TrainBatch, objective: Objective) -> tuple[float, float]:
        began = time.perf_counter()
        if self.has_met:  # wait until all workers are back: the first one may still be saving the weights
            with self.profile.span(WAIT):
                self.group.gather(torch.zeros(1))
            self.has_met = False
        self.waited_inside = time.perf_counter() - began
        loss, weight = super().compute(batch, objective)
        self.share = weight / batch.global_weight if batch.global_weight else 1.0
        return loss, weight

    def exchange(self, tallies: Tensor) -> SyncStats:
        super().exchange(tallies)
        return SyncStats(wait_seconds=self.waited_inside)

    def apply(self, lr: float) -> None:
        self.optimizer.step(lr * self.share)

    def settle(self, tallies: Tensor, now: bool = False) -> SyncStats:
        self.since += not now
        if self.since < self.every and not now:
            return SyncStats()
        self.since, self.has_met = 0, True
        began = time.perf_counter()
        self.group.start_sum(tallies).wait()
        return SyncStats(estimate_ring_bytes(tallies.nbytes, self.group.size), time.perf_counter() - began)

    def state_dict(self) -> dict[str, Tensor]:
        return gather_state(self.optimizer, self.group)

    def load_state_dict(self, state: Mapping[str, Tensor]) -> None:
        restore_state(self.optimizer, self.group, state)


def shared_memory(world: World) -> Path | None:
    """A file for the weights, in the launcher's temporary folder, which is removed when the run ends."""
    if world.size == 1:
        return None
    if not world.rendezvous.startswith("file://") or world.address:
        remedy = "use --workers on one machine without a launcher, or --strategy local-sgd"
        raise UsageError("--strategy hogwild works on one machine only", remedy=remedy)
    return Path(world.rendezvous.removeprefix("file://")).with_name("weights")
