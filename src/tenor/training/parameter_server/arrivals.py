"""Gradients that workers pushed to the server, on their way into the loop."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
import torch
from torch import Tensor

from tenor.training.batch import TrainBatch
from tenor.training.parameter_server.claims import Counts
from tenor.training.parameter_server.leases import Grant
from tenor.training.parameter_server.messages import Array


@dataclass
class Pull:
    """The weights that a worker computes with."""

    dense: Tensor
    rows: list[Tensor] | None = None  # row numbers, one tensor per embedding table
    values: list[Tensor] = field(default_factory=list)  # those rows, one tensor per table


@dataclass(frozen=True)
class Push:
    """The gradients of one lease."""

    grant: Grant
    pull: Pull
    counts: Counts
    arrays: Sequence[Array]


@dataclass(frozen=True)
class Arrival(TrainBatch):
    """A complete update, which takes the place of a batch in the loop: its samples are already computed."""

    pushes: tuple[Push, ...] = ()
    staleness: int = 0  # in updates

    def __len__(self) -> int:
        return int(self.total("samples"))

    def to(self, device: torch.device) -> Arrival:
        return self

    def total(self, name: str) -> float:
        """The sum of one of the counts over the pushes."""
        return sum(float(getattr(push.counts, name)) for push in self.pushes)

    @property
    def num_tokens(self) -> int:
        return int(self.total("tokens"))

    @property
    def num_padded(self) -> int:
        return int(self.total("padded"))


def make_arrival(pushes: Sequence[Push], staleness: int) -> Arrival:
    """The update that these pushes, one per part of a batch, add up to."""
    nothing = torch.empty(0)
    return Arrival(nothing, nothing, np.empty(0, np.uint64), nothing, pushes=tuple(pushes), staleness=staleness)
