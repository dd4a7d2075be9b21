"""Hogwild: workers of one machine update the same weights in shared memory, without locks.

Each worker computes on its own part of each global batch and writes its update at once, on top of whatever the others
have written meanwhile; now and then an update of one number is lost (Recht et al. 2011, "Hogwild!: A Lock-Free Approach
to Parallelizing Stochastic Gradient Descent"). Nobody waits and no gradient is sent, so it beats `allreduce` where
steps are short; it repeats only roughly, since updates meet in no fixed order. As in fastText the weights are shared
and everything else is private, the optimizer's state too. A worker's rate is scaled by its part of the batch, so one
batch moves the weights as far as it does in one process. Every K steps the workers meet to count, to stop and to save.
"""

from __future__ import annotations

import time
from collections.abc import Mapping
from pathlib import Path

import torch
from torch import Tensor, nn

from tenor.errors import UsageError
from tenor.models.batch import Batch
from tenor.training.groups import Group
from tenor.training.losses import Objective
from tenor.training.optimizers import Optimizer
from tenor.training.strategies.base import SyncStats, backpropagate, divide_gradients
from tenor.training.strategies.private import gather_state, restore_state
from tenor.world import World


class Hogwild:
    def __init__(self, every: int, memory: Path | None) -> None:
        self.every, self.memory = every, memory
        self.since = 0  # steps since the last meeting
        self.has_met = True  # and nobody has moved since
        self.waited_inside = 0.0

    @property
    def is_settled(self) -> bool:
        return self.since == 0

    def setup(self, model: nn.Module, optimizer: Optimizer, group: Group) -> None:
        self.model, self.optimizer, self.group = model, optimizer, group
        if self.memory is not None:
            self._share(model, self.memory)

    @torch.no_grad()
    def _share(self, model: nn.Module, file: Path) -> None:
        """Put the weights into a file that all workers map; every one writes the same first values."""
        parameters = dict(model.named_parameters())
        first = next(iter(parameters.values()))
        if first.device.type != "cpu":
            raise UsageError("--strategy hogwild computes on processors only", remedy="add --device cpu")
        size = sum(parameter.numel() for parameter in parameters.values())
        flat = torch.from_file(str(file), shared=True, size=size, dtype=first.dtype)
        views = flat.split([parameter.numel() for parameter in parameters.values()])
        for (name, parameter), view in zip(parameters.items(), views, strict=True):
            shared = view.view_as(parameter)
            shared.copy_(parameter)
            parameter.data = shared
            self.optimizer.weights[name] = parameter.detach()

    def compute(self, batch: Batch, objective: Objective) -> tuple[float, float]:
        began = time.perf_counter()
        if self.has_met:  # nobody writes until all are back: the first worker may have been saving the weights
            self.group.gather(torch.zeros(1))
            self.has_met = False
        self.waited_inside = time.perf_counter() - began
        self.part = len(batch) / batch.num_global if batch.num_global else 1.0
        return backpropagate(self.model, self.optimizer, batch, objective)

    def exchange(self, tallies: Tensor) -> SyncStats:
        divide_gradients(self.optimizer, float(tallies[1]))
        return SyncStats(wait_seconds=self.waited_inside)

    def apply(self, lr: float) -> None:
        self.optimizer.step(lr * self.part)

    def settle(self, tallies: Tensor, now: bool = False) -> SyncStats:
        self.since += not now
        if self.since < self.every and not now:
            return SyncStats()
        self.since, self.has_met = 0, True
        began = time.perf_counter()
        self.group.start_sum(tallies).wait()
        size = self.group.size  # a ring sends each byte twice, less the part a rank already has
        return SyncStats(2 * tallies.nbytes * (size - 1) // size, time.perf_counter() - began)

    def state_dict(self) -> dict[str, Tensor]:
        return gather_state(self.optimizer, self.group)

    def load_state_dict(self, state: Mapping[str, Tensor]) -> None:
        restore_state(self.optimizer, self.group, state)


def shared_memory(world: World) -> Path | None:
    """A file beside the local launcher's meeting place, in a folder that goes when the run ends."""
    if world.size == 1:
        return None
    if not world.rendezvous.startswith("file://"):
        remedy = "use --workers on one machine without a launcher, or --strategy local-sgd"
        raise UsageError("--strategy hogwild shares the memory of one machine", remedy=remedy)
    return Path(world.rendezvous.removeprefix("file://")).with_name("weights")
