"""Synchronous data parallelism: every worker ends each step with the gradient of the whole global batch.

Each worker backpropagates the sum of its losses; the sums are added up and divided once by the global sum of weights,
so the update is that of a single process at any split, empty shares included. Dense gradients travel in buckets that
start while backward still runs (Li et al. 2020, "PyTorch Distributed"); embedding gradients travel as the rows that
the global batch touches, which every worker knows without asking.
"""

from __future__ import annotations

import time
from collections.abc import Mapping
from functools import partial

import torch
from torch import Tensor, nn

from tenor.models.batch import Batch
from tenor.training.compression import Compression, Uncompressed
from tenor.training.groups import Group, Pending
from tenor.training.losses import Objective
from tenor.training.optimizers import Optimizer
from tenor.training.strategies.base import InStep, SyncStats, backpropagate
from tenor.training.strategies.private import gather_tensors, restore_tensors

BUCKET_BYTES = 1 << 20


class AllReduce(InStep):
    def __init__(self, compression: Compression | None = None) -> None:
        self.compression = compression or Uncompressed()

    def setup(self, model: nn.Module, optimizer: Optimizer, group: Group) -> None:
        self.model, self.optimizer, self.group = model, optimizer, group
        parameters = [(n, p) for n, p in model.named_parameters() if n not in optimizer.tables]
        self.buckets = _make_buckets(list(reversed(parameters)))  # backward meets the last layer first
        for index, bucket in enumerate(self.buckets):
            for name, parameter in bucket.parameters.items():
                parameter.register_post_accumulate_grad_hook(partial(self._ready, index, name))
            self.compression.remember(bucket.name, bucket.flat)
        for name in optimizer.tables:
            self.compression.remember(name, optimizer.weights[name])
        self.started = 0
        self.is_last = False

    def compute(self, batch: Batch, objective: Objective) -> tuple[float, float]:
        self.started = 0
        for bucket in self.buckets:
            bucket.missing = set(bucket.parameters)
        self.is_last = False
        return backpropagate(self.model, self.optimizer, batch, objective, self._expect)

    def _expect(self) -> None:
        """The gradients that backward meets from now on are whole."""
        self.is_last = True

    def _ready(self, index: int, name: str, parameter: Tensor) -> None:
        if not self.is_last:
            return
        self.buckets[index].missing.discard(name)
        while self.started < len(self.buckets) and not self.buckets[self.started].missing:
            self._start()

    def _start(self) -> None:
        """Buckets start in one fixed order on every rank, as the sums must."""
        self.buckets[self.started].start(self.group, self.compression)
        self.started += 1

    def exchange(self, tallies: Tensor) -> SyncStats:
        began = time.perf_counter()
        while self.started < len(self.buckets):
            self._start()
        every = [(name, gradient) for name, gradient in self.optimizer.gradients() if name in self.optimizer.tables]
        is_plain = type(self.compression) is Uncompressed
        rows = [gradient for _, gradient in every] if is_plain else []  # these travel with the tallies, in one message
        apart = [] if is_plain else [self._start_rows(name, gradient) for name, gradient in every]
        tail = torch.cat([*(gradient.flatten() for gradient in rows), tallies.to(self.buckets[0].flat)])
        self.group.start_sum(tail).wait()
        *parts, summed = tail.split([*(gradient.numel() for gradient in rows), len(tallies)])
        tallies.copy_(summed)
        weight = float(tallies[1]) or 1.0  # a batch of classes that weigh nothing leaves zeros
        for gradient, part in zip(rows, parts, strict=True):
            torch.div(part.view_as(gradient), weight, out=gradient)
        for bucket in self.buckets:
            bucket.finish(weight)
        for pending, gradient in apart:
            pending.wait()
            gradient.div_(weight)
        flats = [bucket.flat for bucket in self.buckets] + [gradient for _, gradient in apart]
        size = self.group.size  # a ring sends each byte twice, less the part a rank already has
        full = tail.nbytes + sum(flat.nbytes for flat in flats)
        payload = tail.nbytes + sum(self.compression.num_bytes(flat, size) for flat in flats)
        sent, plain = (2 * count * (size - 1) // size for count in (payload, full))
        return SyncStats(sent, time.perf_counter() - began, plain - sent)

    def _start_rows(self, name: str, gradient: Tensor) -> tuple[Pending, Tensor]:
        rows = self.optimizer.tables[name].rows
        return self.compression.start(self.group, name, gradient.view(-1), rows), gradient

    def apply(self, lr: float) -> None:
        self.optimizer.step(lr)

    def state_dict(self) -> dict[str, Tensor]:
        return gather_tensors(self.compression.memory, self.group, range(self.group.size))

    def load_state_dict(self, state: Mapping[str, Tensor]) -> None:
        """With another number of workers what they held back starts from nothing."""
        if {name.partition("/")[0] for name in state} == {str(rank) for rank in range(self.group.size)}:
            restore_tensors(self.compression.memory, self.group, state)


class _Bucket:
    """Some parameters whose gradients travel together in one flat buffer."""

    def __init__(self, parameters: dict[str, nn.Parameter]) -> None:
        self.parameters = parameters
        self.name = "+".join(parameters)
        first = next(iter(parameters.values()))
        self.flat = first.new_zeros(sum(p.numel() for p in parameters.values()))
        self.views = self.flat.split([p.numel() for p in parameters.values()])
        self.missing: set[str] = set()
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
    groups: list[dict[str, nn.Parameter]] = [{}]
    filled = 0
    for name, parameter in parameters:
        if groups[-1] and filled + parameter.nbytes > BUCKET_BYTES:
            groups.append({})
            filled = 0
        groups[-1][name] = parameter
        filled += parameter.nbytes
    return [_Bucket(group) for group in groups]
