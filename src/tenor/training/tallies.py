"""The small numbers that ride along with every step's gradient, so that all workers know the same after it."""

from __future__ import annotations

import signal
from dataclasses import dataclass, fields

import torch
from torch import Tensor


@dataclass(frozen=True)
class Tallies:
    """Sums over the workers; `loss` and `weight` come first, as strategies expect."""

    loss: float
    weight: float
    samples: float
    tokens: float
    interrupted: float  # how many workers were sent SIGINT
    terminated: float  # how many were sent SIGTERM
    late: float  # how many find that the time is over

    def pack(self, rank: int, size: int, compute_seconds: float, wait_seconds: float) -> Tensor:
        """A vector to be summed; each worker's seconds (of the step before) have a slot of their own."""
        seconds = torch.zeros(2, size, dtype=torch.float64)
        seconds[:, rank] = torch.tensor([compute_seconds, wait_seconds])
        own = torch.tensor([getattr(self, field.name) for field in fields(self)], dtype=torch.float64)
        return torch.cat([own, seconds.flatten()])

    @classmethod
    def unpack(cls, vector: Tensor, size: int) -> tuple[Tallies, list[float], list[float]]:
        """The sums, and the compute and waiting seconds of each worker."""
        values = vector.tolist()
        count = len(fields(cls))
        return cls(*values[:count]), values[count : count + size], values[count + size :]

    @property
    def mean_loss(self) -> float:
        return self.loss / self.weight if self.weight else float("nan")

    @property
    def signal(self) -> int:
        """The signal that some worker was sent, or 0."""
        if self.interrupted:
            return int(signal.SIGINT)
        return int(signal.SIGTERM) if self.terminated else 0
