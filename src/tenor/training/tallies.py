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

    def pack(self, rank: int, size: int, *own: float) -> Tensor:
        """A vector to be summed; the `own` measures of each worker have slots of their own."""
        slots = torch.zeros(len(own), size, dtype=torch.float64)
        slots[:, rank] = torch.tensor(own, dtype=torch.float64)
        sums = torch.tensor([getattr(self, field.name) for field in fields(self)], dtype=torch.float64)
        return torch.cat([sums, slots.flatten()])

    @classmethod
    def unpack(cls, vector: Tensor, size: int) -> tuple[Tallies, list[list[float]]]:
        """The sums, and each measure by worker."""
        values = vector.tolist()
        count = len(fields(cls))
        return cls(*values[:count]), [values[at : at + size] for at in range(count, len(values), size)]

    @property
    def mean_loss(self) -> float:
        return self.loss / self.weight if self.weight else float("nan")

    @property
    def signal(self) -> int:
        """The signal that some worker was sent, or 0."""
        if self.interrupted:
            return int(signal.SIGINT)
        return int(signal.SIGTERM) if self.terminated else 0
