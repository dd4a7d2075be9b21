"""A model's stages over the ranks of a row, with micro-batches in flight so that all ranks work at once.

Which rank computes what, and in which order, are pure functions. A rank's order comes from a simulation in which
whoever is free takes a backward pass first, else the next forward pass, with at most as many micro-batches in flight
as there are parts ahead (PipeDream's one forward, one backward, flushed in every step as GPipe is).
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
from tenor.models.batch import Batch
from tenor.models.stage import Stage, run_stages
from tenor.training.groups import Group, Pending
from tenor.training.losses import Objective


class Pass(NamedTuple):
    """One micro-batch through one part, forwards or backwards."""

    is_backward: bool
    part: int
    piece: int


def place_stages(num_stages: int, depth: int) -> tuple[int, ...]:
    """The rank of each stage: the first and the last (embedding and head) share rank 0, those between are spread over
    the others; where there are too few for that, the stages follow each other over the ranks."""
    if depth > num_stages:
        remedy = f"use at most {num_stages} workers a model, more --layers, or --strategy hybrid with --model-parallel"
        raise UsageError(f"a model of {num_stages} stages cannot be split over {depth} workers", remedy=remedy)
    between = num_stages - 2
    if depth == 1 or between < depth - 1:
        return tuple(stage * depth // num_stages for stage in range(num_stages))
    return (0, *(1 + stage * (depth - 1) // between for stage in range(between)), 0)


@cache
def plan(ranks: tuple[int, ...], num_pieces: int) -> tuple[tuple[Pass, ...], ...]:
    """The order of passes of each rank, where part i is on rank ranks[i]. Backward passes take twice as long."""
    free = [0] * (max(ranks) + 1)
    order: list[list[Pass]] = [[] for _ in free]
    done: dict[Pass, int] = {}  # and when
    left = [
        Pass(back, part, piece) for back in (True, False) for piece in range(num_pieces) for part in range(len(ranks))
    ]
    while left:
        ready = [(one, _needs(one, len(ranks))) for one in left]
        starts = {
            one: max([free[ranks[one.part]], *(done[other] for other in needs)])
            for one, needs in ready
            if all(other in done for other in needs)
        }
        chosen = min(starts, key=lambda one: starts[one])  # of equal ones the first: backward, then the older piece
        rank = ranks[chosen.part]
        free[rank] = done[chosen] = starts[chosen] + (2 if chosen.is_backward else 1)
        order[rank].append(chosen)
        left.remove(chosen)
    return tuple(map(tuple, order))


def _needs(one: Pass, num_parts: int) -> list[Pass]:
    """What must be done before: the pass it takes its input from, and one that makes room for it."""
    _, part, piece = one
    ahead = num_parts - part
    if one.is_backward:
        return [Pass(True, part + 1, piece) if ahead > 1 else Pass(False, part, piece)]
    source = [Pass(False, part - 1, piece)] if part else []
    return source + ([Pass(True, part, piece - ahead)] if piece >= ahead else [])


@dataclass(frozen=True)
class Part:
    """Neighbouring stages on one rank."""

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
        self.wait_seconds = 0.0

    def run(self, pieces: Sequence[Batch], objective: Objective) -> tuple[float, float]:
        """Leave the gradient of the sum of losses with this rank's weights; losses and weights are told by the rank of
        the last part, the others tell 0."""
        self.pieces, self.objective = pieces, objective
        self.bytes_sent, self.wait_seconds = 0, 0.0
        self.totals = [0.0, 0.0]
        self.kept: dict[tuple[int, int], tuple[Tensor, Tensor]] = {}  # inputs and outputs, until their backward pass
        self.sends: list[tuple[Pending, Tensor]] = []  # with what must live until it is sent
        own = plan(tuple(part.rank for part in self.parts), len(pieces))[self.row.rank]
        self.inbox = {one: self._expect(one) for one in own if self._source(one) is not None}
        for one in own:
            (self._backward if one.is_backward else self._forward)(one)
        for pending, _ in self.sends:
            self._wait(pending)
        return self.totals[0], self.totals[1]

    def _source(self, one: Pass) -> int | None:
        """The part that a pass gets its input from by message."""
        other = one.part + (1 if one.is_backward else -1)
        return other if 0 <= other < len(self.parts) else None

    def _tag(self, one: Pass) -> int:
        return (2 * one.part + one.is_backward) * len(self.pieces) + one.piece

    def _expect(self, one: Pass) -> tuple[Pending, Tensor]:
        source = self._source(one)
        assert source is not None
        maker = self.parts[one.part if one.is_backward else source]  # a gradient is like what it is the gradient of
        room = torch.empty(maker.stages[-1].shape(self.pieces[one.piece]), dtype=self.dtype)
        return self.row.start_receive(room, self.parts[source].rank, self._tag(one)), room

    def _take(self, one: Pass) -> Tensor:
        pending, room = self.inbox.pop(one)
        self._wait(pending)
        return room

    def _wait(self, pending: Pending) -> None:
        began = time.perf_counter()
        pending.wait()
        self.wait_seconds += time.perf_counter() - began

    def _send(self, tensor: Tensor, one: Pass) -> None:
        """To the pass that goes on with it."""
        tensor = tensor.detach().contiguous()
        self.sends.append((self.row.start_send(tensor, self.parts[one.part].rank, self._tag(one)), tensor))
        self.bytes_sent += tensor.nbytes

    def _forward(self, one: Pass) -> None:
        piece = self.pieces[one.piece]
        states = self._take(one).requires_grad_() if one.part else piece.tokens
        outputs = run_stages(self.parts[one.part].stages, states, piece)
        if one.part + 1 < len(self.parts):
            self._send(outputs, Pass(False, one.part + 1, one.piece))
        else:
            outputs, weight = self.objective(outputs, piece.labels)
            self.totals[0] += float(outputs.detach())
            self.totals[1] += float(weight)
        self.kept[one.part, one.piece] = states, outputs

    def _backward(self, one: Pass) -> None:
        states, outputs = self.kept.pop((one.part, one.piece))
        outputs.backward(self._take(one) if one in self.inbox else None)
        if one.part:
            assert states.grad is not None
            self._send(states.grad, Pass(True, one.part - 1, one.piece))
