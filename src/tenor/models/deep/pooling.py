"""Poolings over time that ignore padding: from (time, batch, width) to (batch, width)."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Tensor

from tenor.models.deep.maxpool import max_over_time


def reverse_index(lengths: Tensor, time: int) -> Tensor:
    """An index (time, batch, 1) that reverses each row within its own length and keeps padding; its own inverse."""
    steps = torch.arange(time, device=lengths.device)[:, None]
    return torch.where(steps < lengths, lengths - 1 - steps, steps)[:, :, None]


def _real(states: Tensor, lengths: Tensor) -> Tensor:
    return (torch.arange(len(states), device=lengths.device)[:, None] < lengths)[:, :, None]  # (time, batch, 1)


def _max(states: Tensor, lengths: Tensor, bidirectional: bool) -> Tensor:
    return max_over_time(states, lengths)


def _mean(states: Tensor, lengths: Tensor, bidirectional: bool) -> Tensor:
    return (states * _real(states, lengths)).sum(0) / lengths[:, None]


def _last(states: Tensor, lengths: Tensor, bidirectional: bool) -> Tensor:
    """The last state of each direction; the backward direction ends at the first word."""
    last = states.gather(0, (lengths - 1)[None, :, None].expand(1, -1, states.shape[2]))[0]
    if not bidirectional:
        return last
    half = states.shape[2] // 2
    return torch.cat([last[:, :half], states[0, :, half:]], dim=1)


def _max_mean(states: Tensor, lengths: Tensor, bidirectional: bool) -> Tensor:
    return torch.cat([_max(states, lengths, bidirectional), _mean(states, lengths, bidirectional)], dim=1)


@dataclass(frozen=True)
class Pooling:
    """A function over time, and the ratio of its output width to its input width."""

    pool: Callable[[Tensor, Tensor, bool], Tensor]
    widening: int = 1

    def __call__(self, states: Tensor, lengths: Tensor, bidirectional: bool) -> Tensor:
        return self.pool(states, lengths, bidirectional)


POOLINGS = {"max": Pooling(_max), "mean": Pooling(_mean), "last": Pooling(_last), "max-mean": Pooling(_max_mean, 2)}
