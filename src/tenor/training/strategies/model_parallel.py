"""Model parallelism: the ranks of a row hold one model together, and each computes its stages.

Here one row has all ranks; `hybrid` has several rows that share the batch. Rank 0 of a row holds the embedding and the
head, the others hold the recurrent layers. Several micro-batches are in flight, so that the ranks work at the same time
(Huang et al. 2019, "GPipe"; Narayanan et al. 2019, "PipeDream", for the order of passes). All micro-batches of a step
use the same weights and their gradients add up, so the update is that of one process, to rounding. It spreads optimizer
state, gradients and activations over the ranks. The price is sending the activations between ranks, and ranks that wait
where the stages are not equally heavy.
"""

from __future__ import annotations

import time
from typing import cast

import torch
from torch import Tensor, nn

from tenor.errors import UsageError
from tenor.groups import Group, estimate_ring_bytes
from tenor.models.stage import StagedModel
from tenor.training.batch import TrainBatch
from tenor.training.gradients import begin_gradients, divide_gradients
from tenor.training.optim.optimizers import Optimizer
from tenor.training.profiling.spans import FORWARD
from tenor.training.settings import TrainSettings
from tenor.training.strategies.base import Strategy, SyncStats
from tenor.training.strategies.grid import make_grid
from tenor.training.strategies.pipeline import Pipeline
from tenor.training.tasks.losses import Objective
from tenor.world import World


class ModelParallel(Strategy):
    def __init__(self, depth: int) -> None:
        self.depth = depth  # ranks of a row

    @classmethod
    def make(cls, settings: TrainSettings, world: World) -> Strategy:
        return cls(world.size)

    def setup(self, model: nn.Module, optimizer: Optimizer, group: Group) -> None:
        first = next(model.parameters())
        if first.device.type != "cpu":
            raise UsageError("model parallelism works on CPUs only", remedy="add --device cpu")
        super().setup(model, optimizer, group)
        self.grid = make_grid(group, self.depth)
        self.pipeline = Pipeline(cast(StagedModel, model).stages(), self.grid.row, first.dtype)
        own = [part for part in self.pipeline.parts if part.rank == self.grid.row.rank]
        modules = [module for part in own for stage in part.stages for module in stage.modules]
        held = {id(weight) for module in modules for weight in module.parameters()}
        optimizer.narrow([name for name, weight in model.named_parameters() if id(weight) in held])

    def compute(self, batch: TrainBatch, objective: Objective) -> tuple[float, float]:
        with self.profile.span(FORWARD):
            begin_gradients(self.optimizer, batch)
        count = batch.num_micro_batches or self.depth  # more micro-batches mean less waiting, but smaller products
        sums = self.pipeline.run(batch.micro_batches(count), objective, self.profile)
        self.waited_inside = self.pipeline.wait_seconds
        return sums

    def exchange(self, tallies: Tensor) -> SyncStats:
        began = time.perf_counter()
        summed_tallies = self.group.start_sum(tallies)
        summed = self._sum_over_rows()
        summed_tallies.wait()
        divide_gradients(self.optimizer, float(tallies[1]))
        sent = self.pipeline.bytes_sent + estimate_ring_bytes(tallies.nbytes, self.group.size)
        sent += estimate_ring_bytes(summed, self.grid.column.size)
        return SyncStats(sent, self.waited_inside + time.perf_counter() - began)

    def _sum_over_rows(self) -> int:
        """Add up the gradients of the ranks that hold the same part of the model; return the bytes summed."""
        if self.grid.column.size == 1:
            return 0
        gradients = [gradient for _, gradient in self.optimizer.gradients()]
        flat = torch.cat([gradient.flatten() for gradient in gradients])
        self.grid.column.start_sum(flat).wait()
        for gradient, part in zip(gradients, flat.split([g.numel() for g in gradients]), strict=True):
            gradient.copy_(part.view_as(gradient))
        return flat.nbytes
