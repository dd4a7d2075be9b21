"""Synchronous data parallelism: every worker ends each step with the gradient of the whole global batch.

Each worker backpropagates the sum of its losses; the sums are added up and divided once by the global sum of weights,
so the update is that of a single process at any split, empty shares included. Dense gradients travel in buckets that
start while backward still runs (Li et al. 2020, "PyTorch Distributed"); embedding gradients travel as the rows that
the global batch touches, which every worker knows without asking.
"""

from __future__ import annotations

import time
from functools import partial

import torch
from torch import Tensor, nn

from tenor.models.batch import Batch
from tenor.training.groups import Group, Pending
from tenor.training.losses import Objective
from tenor.training.optimizers import Optimizer
from tenor.training.strategies.base import InStep, SyncStats, backpropagate

BUCKET_BYTES = 1 << 20


class AllReduce(InStep):
    def setup(self, model: nn.Module, optimizer: Optimizer, group: Group) -> None:
        self.model, self.optimizer, self.group = model, optimizer, group
        parameters = [(n, p) for n, p in model.named_parameters() if n not in optimizer.tables]
        self.buckets = _make_buckets(list(reversed(parameters)))  # backward meets the last layer first
        for index, bucket in enumerate(self.buckets):
            for name, parameter in bucket.parameters.items():
                parameter.register_post_accumulate_grad_hook(partial(self._ready, index, name))
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
        self.buckets[self.started].start(self.group)
        self.started += 1

    def exchange(self, tallies: Tensor) -> SyncStats:
        began = time.perf_counter()
        while self.started < len(self.buckets):
            self._start()
        rows = [gradient for name, gradient in self.optimizer.gradients() if name in self.optimizer.tables]
        tail = torch.cat([*(gradient.flatten() for gradient in rows), tallies.to(self.buckets[0].flat)])
        self.group.start_sum(tail).wait()
        *parts, summed = tail.split([*(gradient.numel() for gradient in rows), len(tallies)])
        tallies.copy_(summed)
        weight = float(tallies[1])
        for gradient, part in zip(rows, parts, strict=True):
            torch.div(part.view_as(gradient), weight, out=gradient)
        for bucket in self.buckets:
            bucket.finish(weight)
        payload = tail.nbytes + sum(bucket.flat.nbytes for bucket in self.buckets)
        size = self.group.size  # a ring sends each byte twice, less the part a rank already has
        return SyncStats(2 * payload * (size - 1) // size, time.perf_counter() - began)

    def apply(self, lr: float) -> None:
        self.optimizer.step(lr)


class _Bucket:
    """Some parameters whose gradients travel together in one flat buffer."""

    def __init__(self, parameters: dict[str, nn.Parameter]) -> None:
        self.parameters = parameters
        first = next(iter(parameters.values()))
        self.flat = first.new_zeros(sum(p.numel() for p in parameters.values()))
        self.views = self.flat.split([p.numel() for p in parameters.values()])
        self.missing: set[str] = set()
        self.pending: Pending | None = None

    def start(self, group: Group) -> None:
        for view, parameter in zip(self.views, self.parameters.values(), strict=True):
            if parameter.grad is None:
                view.zero_()
            else:
                view.copy_(parameter.grad.flatten())
        self.pending = group.start_sum(self.flat.detach())

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
