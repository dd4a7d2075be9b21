"""Synchronous data parallelism: in every step, every worker applies the gradient of the whole global batch.

Each worker backpropagates the sum of its losses. The sums are added up over the workers and divided once by the global
sum of weights, so the update equals that of a single process for any split of the batch, including empty shares. Dense
gradients travel in buckets that start while backward still runs (Li et al. 2020, "PyTorch Distributed"). For embedding
tables, only the gradients of the rows that the global batch touches travel; every worker knows these rows already.
"""

from __future__ import annotations

import time
from collections.abc import Mapping
from functools import partial

import torch
from torch import Tensor, nn

from tenor.groups import Group, Pending, estimate_ring_bytes
from tenor.groups.compression import Compression, Uncompressed, make_compression
from tenor.training.batch import TrainBatch
from tenor.training.gradients import backpropagate
from tenor.training.optim.optimizers import Optimizer
from tenor.training.settings import TrainSettings
from tenor.training.strategies.base import Strategy, SyncStats
from tenor.training.strategies.worker_state import gather_tensors, restore_tensors
from tenor.training.tasks.losses import Objective
from tenor.world import World

BUCKET_BYTES = 1 << 20


class AllReduce(Strategy):
    def __init__(self, compression: Compression | None = None) -> None:
        self.compression = compression or Uncompressed()

    @classmethod
    def make(cls, settings: TrainSettings, world: World) -> Strategy:
        return cls(make_compression(settings.compress, settings.top_k, settings.batch_size))

    def setup(self, model: nn.Module, optimizer: Optimizer, group: Group) -> None:
        super().setup(model, optimizer, group)
        parameters = [(n, p) for n, p in model.named_parameters() if n not in optimizer.tables]
        self.buckets = _make_buckets(list(reversed(parameters)))  # backward reaches the last layer first
        for index, bucket in enumerate(self.buckets):
            for name, parameter in bucket.parameters.items():
                parameter.register_post_accumulate_grad_hook(partial(self._mark_ready, index, name))
            self.compression.remember(bucket.name, bucket.flat)
        for name in optimizer.tables:
            self.compression.remember(name, optimizer.weights[name])
        self.measures_noise = group.size > 1 and not self.compression.memory  # top-k holds some numbers back
        self.num_started = 0  # buckets whose sum has started
        self.is_last = False  # whether this is the last micro-batch of the step

    def compute(self, batch: TrainBatch, objective: Objective) -> tuple[float, float]:
        self.num_started = 0
        for bucket in self.buckets:
            bucket.missing = set(bucket.parameters)
        self.is_last = False
        return backpropagate(self.model, self.optimizer, batch, objective, self._expect_final_gradients, self.profile)

    def _expect_final_gradients(self) -> None:
        self.is_last = True

    def _mark_ready(self, index: int, name: str, parameter: Tensor) -> None:
        if not self.is_last:
            return
        self.buckets[index].missing.discard(name)
        while self.num_started < len(self.buckets) and not self.buckets[self.num_started].missing:
            self._start_next()

    def _start_next(self) -> None:
        """Buckets start in one fixed order, because every rank must start its sums in the same order."""
        self.buckets[self.num_started].start(self.group, self.compression)
        self.num_started += 1

    def exchange(self, tallies: Tensor) -> SyncStats:
        began = time.perf_counter()
        while self.num_started < len(self.buckets):
            self._start_next()
        tables = [(name, gradient) for name, gradient in self.optimizer.gradients() if name in self.optimizer.tables]
        is_plain = type(self.compression) is Uncompressed
        rows = [gradient for _, gradient in tables] if is_plain else []  # share one message with the tallies
        apart = [] if is_plain else [self._start_rows(name, gradient) for name, gradient in tables]
        like = next(iter(self.optimizer.weights.values()))
        tail = torch.cat([*(gradient.flatten() for gradient in rows), tallies.to(like)])
        self.group.start_sum(tail).wait()
        *parts, summed = tail.split([*(gradient.numel() for gradient in rows), len(tallies)])
        tallies.copy_(summed)
        weight = float(tallies[1]) or 1.0  # a batch whose classes all have weight 0 leaves zeros
        for gradient, part in zip(rows, parts, strict=True):
            torch.div(part.view_as(gradient), weight, out=gradient)
        for bucket in self.buckets:
            bucket.finish(weight)
        for pending, gradient in apart:
            pending.wait()
            gradient.div_(weight)
        sent, uncompressed = self._count_bytes(tail, [gradient for _, gradient in apart])
        return SyncStats(sent, time.perf_counter() - began, uncompressed - sent)

    def _count_bytes(self, tail: Tensor, apart: list[Tensor]) -> tuple[int, int]:
        """Bytes that this worker sent, and bytes that it would have sent without compression."""
        size = self.group.size
        compressed = [bucket.flat for bucket in self.buckets] + apart
        payload = tail.nbytes + sum(self.compression.num_bytes(flat, size) for flat in compressed)
        full = tail.nbytes + sum(flat.nbytes for flat in compressed)
        return estimate_ring_bytes(payload, size), estimate_ring_bytes(full, size)

    def _start_rows(self, name: str, gradient: Tensor) -> tuple[Pending, Tensor]:
        rows = self.optimizer.tables[name].rows
        return self.compression.start(self.group, name, gradient.view(-1), rows), gradient

    def state_dict(self) -> dict[str, Tensor]:
        return gather_tensors(self.compression.memory, self.group, range(self.group.size))

    def load_state_dict(self, state: Mapping[str, Tensor]) -> None:
        """With another number of workers, the gradients that compression held back are lost."""
        if {name.partition("/")[0] for name in state} == {str(rank) for rank in range(self.group.size)}:
            restore_tensors(self.compression.memory, self.group, state)


class _Bucket:
    """Parameters whose gradients travel together in one flat buffer."""

    def __init__(self, parameters: dict[str, nn.Parameter]) -> None:
        self.parameters = parameters
        self.name = "+".join(parameters)
        first = next(iter(parameters.values()))
        self.flat = first.new_zeros(sum(p.numel() for p in parameters.values()))
        self.views = self.flat.split([p.numel() for p in parameters.values()])
        self.missing: set[str] = set()  # parameters whose gradient is not final yet
        self.pending: Pending | None = None

    def start(self, group: Group, compression: Compression) -> None:
        for view, parameter in zip(self.views, self.parameters.values(), strict=True):
            if parameter.grad is None:
                view.zero_()
            else:
                view.copy_(parameter.grad.flatten())
        self.pending = compression.start(group, self.name, self.flat.detach())

    def finish(self, weight: float) -> None:
        assert self.pending is not None
        self.pending.wait()
        self.flat.div_(weight)
        for view, parameter in zip(self.views, self.parameters.values(), strict=True):
            parameter.grad = view.view_as(parameter)


def _make_buckets(parameters: list[tuple[str, nn.Parameter]]) -> list[_Bucket]:
    """Parameters in groups of about BUCKET_BYTES; a model of tables alone has none."""
    groups: list[dict[str, nn.Parameter]] = [{}]
    filled = 0
    for name, parameter in parameters:
        if groups[-1] and filled + parameter.nbytes > BUCKET_BYTES:
            groups.append({})
            filled = 0
        groups[-1][name] = parameter
        filled += parameter.nbytes
    return [_Bucket(group) for group in groups if group]
