"""The stages of a model over the ranks of a row, with several micro-batches in flight so that all ranks compute.

Pure functions decide which rank computes which pass, and in which order. The order of each rank comes from a simulation
in which a free rank takes a backward pass if it can, otherwise the next forward pass. A part of the model has at most
as many micro-batches in flight as there are parts from it to the end (PipeDream's one-forward-one-backward schedule,
flushed in every step as in GPipe).
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from itertools import groupby
from typing import NamedTuple

import torch
from torch import Tensor

from tenor.errors import UsageError
from tenor.groups import Group, Pending
from tenor.models.stage import Stage, run_stages
from tenor.training.batch import TrainBatch
from tenor.training.profiling.spans import BACKWARD, EXCHANGE, FORWARD, OFF, WAIT, Profiler
from tenor.training.tasks.losses import Objective


class Pass(NamedTuple):
    """One micro-batch through one part of the model, forwards or backwards."""

    is_backward: bool
    part: int
    micro_batch: int


def place_stages(num_stages: int, depth: int) -> tuple[int, ...]:
    """The rank of each stage.

    The first and the last stage (embedding and head) share rank 0, the stages between are spread over the other ranks.
    If there are too few stages for that, they are spread over the ranks in their order.
    """
    if depth > num_stages:
        remedy = f"use at most {num_stages} workers, more --layers, or --strategy hybrid with --model-parallel"
        raise UsageError(f"a model of {num_stages} stages cannot be split over {depth} workers", remedy=remedy)
    between = num_stages - 2
    if depth == 1 or between < depth - 1:
        return tuple(stage * depth // num_stages for stage in range(num_stages))
    return (0, *(1 + stage * (depth - 1) // between for stage in range(between)), 0)


@cache
def plan(ranks: tuple[int, ...], num_micro_batches: int) -> tuple[tuple[Pass, ...], ...]:
    """The order of passes of each rank, where part i is on rank ranks[i]. A backward pass takes twice as long."""
    free = [0] * (max(ranks) + 1)  # when each rank is free
    order: list[list[Pass]] = [[] for _ in free]
    done: dict[Pass, int] = {}  # when each pass ends
    left = [
        Pass(is_backward, part, number)
        for is_backward in (True, False)
        for number in range(num_micro_batches)
        for part in range(len(ranks))
    ]
    while left:
        needs = {one: _needs(one, len(ranks)) for one in left}
        starts = {
            one: max([free[ranks[one.part]], *(done[other] for other in needs[one])])
            for one in left
            if all(other in done for other in needs[one])
        }
        chosen = min(starts, key=lambda one: starts[one])  # on a tie the first: backward, then the older micro-batch
        rank = ranks[chosen.part]
        free[rank] = done[chosen] = starts[chosen] + (2 if chosen.is_backward else 1)
        order[rank].append(chosen)
        left.remove(chosen)
    return tuple(map(tuple, order))


def _needs(one: Pass, num_parts: int) -> list[Pass]:
    """The passes that must be done before: the one that gives the input, and one that makes room in flight."""
    _, part, number = one
    ahead = num_parts - part
    if one.is_backward:
        return [Pass(True, part + 1, number) if ahead > 1 else Pass(False, part, number)]
    source = [Pass(False, part - 1, number)] if part else []
    return source + ([Pass(True, part, number - ahead)] if number >= ahead else [])


@dataclass(frozen=True)
class Part:
    """Consecutive stages on one rank."""

    rank: int
    stages: Sequence[Stage]


class Pipeline:
    def __init__(self, stages: Sequence[Stage], row: Group, dtype: torch.dtype) -> None:
        self.row, self.dtype = row, dtype
        placed = zip(place_stages(len(stages), row.size), stages, strict=True)
        self.parts = [
            Part(rank, [stage for _, stage in some]) for rank, some in groupby(placed, key=lambda pair: pair[0])
        ]
        self.bytes_sent = 0  # in the last run
        self.wait_seconds = 0.0  # in the last run

    def run(
        self, micro_batches: Sequence[TrainBatch], objective: Objective, profile: Profiler = OFF
    ) -> tuple[float, float]:
        """Leave the gradient of the sum of losses with this rank's weights.

        Returns:
            The sums of losses and of weights on the rank of the last part, zeros on the other ranks.
        """
        self.micro_batches, self.objective, self.profile = micro_batches, objective, profile
        self.bytes_sent, self.wait_seconds = 0, 0.0
        self.totals = [0.0, 0.0]
        self.kept: dict[tuple[int, int], tuple[Tensor, Tensor]] = {}  # inputs and outputs, until the backward pass
        self.sends: list[tuple[Pending, Tensor]] = []  # each with its tensor, which must live until it is sent
        own = plan(tuple(part.rank for part in self.parts), len(micro_batches))[self.row.rank]
        self.inbox = {one: self._expect(one) for one in own if self._source(one) is not None}
        for one in own:
            with profile.span(BACKWARD if one.is_backward else FORWARD):
                (self._backward if one.is_backward else self._forward)(one)
        for pending, _ in self.sends:
            self._wait(pending)
        return self.totals[0], self.totals[1]

    def _source(self, one: Pass) -> int | None:
        """The part that sends a pass its input, if any."""
        other = one.part + (1 if one.is_backward else -1)
        return other if 0 <= other < len(self.parts) else None

    def _tag(self, one: Pass) -> int:
        return (2 * one.part + one.is_backward) * len(self.micro_batches) + one.micro_batch

    def _expect(self, one: Pass) -> tuple[Pending, Tensor]:
        source = self._source(one)
        assert source is not None
        maker = self.parts[one.part if one.is_backward else source]  # a gradient has the shape of its tensor
        shape = maker.stages[-1].shape(self.micro_batches[one.micro_batch])
        received = torch.empty(shape, dtype=self.dtype)
        return self.row.start_receive(received, self.parts[source].rank, self._tag(one)), received

    def _take(self, one: Pass) -> Tensor:
        pending, received = self.inbox.pop(one)
        self._wait(pending)
        return received

    def _wait(self, pending: Pending) -> None:
        began = time.perf_counter()
        with self.profile.span(WAIT):
            pending.wait()
        self.wait_seconds += time.perf_counter() - began

    def _send(self, tensor: Tensor, one: Pass) -> None:
        """Send a tensor to the pass that takes it as its input."""
        tensor = tensor.detach().contiguous()
        with self.profile.span(EXCHANGE):
            self.sends.append((self.row.start_send(tensor, self.parts[one.part].rank, self._tag(one)), tensor))
        self.bytes_sent += tensor.nbytes

    def _forward(self, one: Pass) -> None:
        batch = self.micro_batches[one.micro_batch]
        states = self._take(one).requires_grad_() if one.part else batch.inputs
        outputs = run_stages(self.parts[one.part].stages, states, batch)
        if one.part + 1 < len(self.parts):
            self._send(outputs, Pass(False, one.part + 1, one.micro_batch))
        else:
            outputs, weight = self.objective(outputs, batch.labels)
            self.totals[0] += float(outputs.detach())
            self.totals[1] += float(weight)
        self.kept[one.part, one.micro_batch] = states, outputs

    def _backward(self, one: Pass) -> None:
        states, outputs = self.kept.pop((one.part, one.micro_batch))
        outputs.backward(self._take(one) if one in self.inbox else None)
        if one.part:
            assert states.grad is not None
            self._send(states.grad, Pass(True, one.part - 1, one.micro_batch))
