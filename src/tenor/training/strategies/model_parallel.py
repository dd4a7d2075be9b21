"""Model parallelism: the ranks of a row hold one model together, each computing its stages; rows share the batch.

A row of all ranks is `model-parallel`; several rows, each with its part of the global batch, are `hybrid`. Rank 0 of a
row has the embedding and the head, the others the recurrent layers. Micro-batches are in flight, so that the ranks work
at once (Huang et al. 2019, "GPipe"; Narayanan et al. 2019, "PipeDream", whose order of passes this is). All
micro-batches of a step meet the same weights and their gradients add up, so the update is that of one process, to
rounding. It spreads optimizer state, gradients and activations over the ranks; what it costs is the activations' way
between them, and ranks that wait where the stages are not equally heavy.
"""

from __future__ import annotations

import time
from dataclasses import replace
from typing import cast

import torch
from torch import Tensor, nn

from tenor.errors import UsageError
from tenor.models.batch import Batch
from tenor.models.stage import Staged
from tenor.training.grid import make_grid
from tenor.training.groups import Group
from tenor.training.losses import Objective
from tenor.training.optimizers import Optimizer
from tenor.training.pipeline import Pipeline
from tenor.training.strategies.base import InStep, SyncStats, begin_gradients, divide_gradients


class ModelParallel(InStep):
    def __init__(self, depth: int) -> None:
        self.depth = depth  # ranks of a row

    def setup(self, model: nn.Module, optimizer: Optimizer, group: Group) -> None:
        first = next(model.parameters())
        if first.device.type != "cpu":
            raise UsageError("a model is split over processors only", remedy="add --device cpu")
        self.optimizer, self.group = optimizer, group
        self.grid = make_grid(group, self.depth)
        self.pipeline = Pipeline(cast(Staged, model).stages(), self.grid.row, first.dtype)
        own = [part for part in self.pipeline.parts if part.rank == self.grid.row.rank]
        modules = [module for part in own for stage in part.stages for module in stage.modules]
        held = {id(weight) for module in modules for weight in module.parameters()}
        optimizer.narrow([name for name, weight in model.named_parameters() if id(weight) in held])

    def compute(self, batch: Batch, objective: Objective) -> tuple[float, float]:
        begin_gradients(self.optimizer, batch)
        count = batch.num_pieces or self.depth  # more leave less waiting, and smaller products
        pieces = list(replace(batch, num_pieces=count).pieces()) if len(batch) else []
        sums = self.pipeline.run(pieces, objective)
        self.waited_inside = self.pipeline.wait_seconds
        return sums

    def exchange(self, tallies: Tensor) -> SyncStats:
        began = time.perf_counter()
        known = self.group.start_sum(tallies)
        summed = self._sum_over_rows()
        known.wait()
        divide_gradients(self.optimizer, float(tallies[1]))
        sent = self.pipeline.bytes_sent + _ring(tallies.nbytes, self.group.size) + _ring(summed, self.grid.column.size)
        return SyncStats(sent, self.waited_inside + time.perf_counter() - began)

    def _sum_over_rows(self) -> int:
        """Add up the gradients of those who hold the same part; the bytes that were summed."""
        if self.grid.column.size == 1:
            return 0
        gradients = [gradient for _, gradient in self.optimizer.gradients()]
        flat = torch.cat([gradient.flatten() for gradient in gradients])
        self.grid.column.start_sum(flat).wait()
        for gradient, part in zip(gradients, flat.split([g.numel() for g in gradients]), strict=True):
            gradient.copy_(part.view_as(gradient))
        return flat.nbytes

    def apply(self, lr: float) -> None:
        self.optimizer.step(lr)


def _ring(payload: int, size: int) -> int:
    """A ring sends each byte twice, less the part a rank already has."""
    return 2 * payload * (size - 1) // size


def check_depth(depth: int, size: int) -> int:
    """The ranks of a row under `hybrid`; one worker is a row of its own."""
    if size % depth and size > 1:
        remedy = f"give a multiple of {depth} workers, or another --model-parallel"
        raise UsageError(f"--strategy hybrid with {size} workers and --model-parallel {depth}", remedy=remedy)
    return min(depth, size)
