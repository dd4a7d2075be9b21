"""Small numbers that are summed together with each step's gradient, so that all workers know the same totals."""

from __future__ import annotations

import signal
from dataclasses import dataclass, fields

import torch
from torch import Tensor


@dataclass(frozen=True)
class Tallies:
    """Sums over the workers. `loss` and `weight` come first, as strategies expect."""

    loss: float
    weight: float
    samples: float
    tokens: float
    interrupted: float  # the number of workers that received SIGINT
    terminated: float  # the number of workers that received SIGTERM
    time_used: float  # the sum over workers and steps of the share of --max-seconds that is over
    reports: float  # the number of workers and steps in these sums

    def pack(self, rank: int, size: int, *own: float) -> Tensor:
        """A vector to be summed over the workers; each worker's `own` measures have separate slots."""
        slots = torch.zeros(len(own), size, dtype=torch.float64)
        slots[:, rank] = torch.tensor(own, dtype=torch.float64)
        sums = torch.tensor([getattr(self, field.name) for field in fields(self)], dtype=torch.float64)
        return torch.cat([sums, slots.flatten()])

    @classmethod
    def unpack(cls, vector: Tensor, size: int) -> tuple[Tallies, list[list[float]]]:
        """The sums, and for each measure its values by worker."""
        values = vector.tolist()
        count = len(fields(cls))
        return cls(*values[:count]), [values[at : at + size] for at in range(count, len(values), size)]

    @property
    def mean_loss(self) -> float:
        return self.loss / self.weight if self.weight else float("nan")

    @property
    def time_share(self) -> float:
        """The share of --max-seconds that is over; 0 without a limit."""
        return self.time_used / self.reports if self.reports else 0.0

    @property
    def signal(self) -> int:
        """A signal that some worker received, or 0."""
        if self.interrupted:
            return int(signal.SIGINT)
        return int(signal.SIGTERM) if self.terminated else 0
