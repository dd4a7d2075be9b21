"""Gradients that workers pushed, on their way into the loop."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import torch
from torch import Tensor

from tenor.models.batch import Batch
from tenor.training.parameter_server.leases import Grant
from tenor.training.parameter_server.messages import Array


@dataclass
class Pull:
    """What a worker computes with."""

    dense: Tensor
    rows: Tensor | None = None  # of embedding tables
    values: list[Tensor] = field(default_factory=list)  # of those rows, a table each


@dataclass(frozen=True)
class Push:
    grant: Grant
    pull: Pull
    counts: dict[str, Any]  # loss, weight, samples, tokens, padded
    arrays: Sequence[Array]


@dataclass(frozen=True)
class Arrival(Batch):
    """Stands where a batch stands in the loop: samples that workers have computed already, for one update."""

    pushes: tuple[Push, ...] = ()
    staleness: int = 0  # in updates

    def __len__(self) -> int:
        return int(self.total("samples"))

    def to(self, device: torch.device) -> Arrival:
        return self

    def total(self, name: str) -> float:
        return sum(float(push.counts[name]) for push in self.pushes)

    @property
    def num_tokens(self) -> int:
        return int(self.total("tokens"))

    @property
    def num_padded(self) -> int:
        return int(self.total("padded"))


def make_arrival(pushes: Sequence[Push], staleness: int) -> Arrival:
    nothing = torch.empty(0)
    return Arrival(nothing, nothing, nothing, np.empty(0, np.uint64), pushes=tuple(pushes), staleness=staleness)
