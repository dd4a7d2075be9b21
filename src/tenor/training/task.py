"""A task is data + model + loss + metrics; every strategy runs every task."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray
from torch import nn

from tenor.evaluation.metrics import Metrics
from tenor.models.batch import Batch
from tenor.store.order import Order
from tenor.training.groups import Group
from tenor.training.losses import Objective


class Task(Protocol):
    order: Order
    objective: Objective
    vocabulary: Path | None  # the file a run needs to read text, where it reads any

    @property
    def known(self) -> dict[str, float]:
        """Figures of the task itself that a result wants beside it, such as the best accuracy possible."""

    def make_model(self) -> nn.Module:
        """The model with its first weights, the same on every rank."""

    def load(self, epoch: int, k: int, rank: int, shares: NDArray[np.float64]) -> Batch:
        """This rank's part of global batch k."""

    def measure(self, model: nn.Module, split: str, group: Group) -> Metrics | None:
        """The model's metrics on a split, the work divided over the group; None where the split is empty."""

    def describe(self) -> dict[str, Any]:
        """What a run's config records, enough to load the model again."""

    def close(self) -> None: ...
