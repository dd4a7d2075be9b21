"""The base class of all tasks: data, model, loss and metrics. Every strategy trains every task."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from torch import nn

from tenor.evaluation.metrics import Metrics
from tenor.evaluation.scores import Scores
from tenor.groups import Group
from tenor.models.stage import StagedModel
from tenor.store.order import Order
from tenor.store.reference import Reference
from tenor.training.batch import TrainBatch
from tenor.training.optim.optimizers import RuleOfPart
from tenor.training.settings import TrainSettings
from tenor.training.tasks.losses import Objective


@dataclass(frozen=True)
class CardText:
    """What a task adds to the model card of a run."""

    title: str
    facts: str  # about the model and its data
    use: str  # what the figures hold for, and how to use the model


class Task:
    order: Order  # of the training rows
    objective: Objective
    vocabulary: Path | None = None  # the file that a run needs to read text, if it reads any
    num_added: int = 0  # of the training rows: those that were made and not read

    @classmethod
    def make(cls, data: Path, settings: TrainSettings, run: Path | None) -> Task:
        """The task of one rank, on prepared `data` if it reads any; `run` is the run folder, if there is one."""
        raise NotImplementedError

    @property
    def seconds_before(self) -> float:
        """Seconds of learning before the first step, which count towards --max-seconds."""
        return 0.0

    @property
    def known(self) -> dict[str, float]:
        """Figures of the task itself that belong beside a result, such as the best possible accuracy."""
        return {}

    @property
    def notes(self) -> list[str]:
        """What the reader should know about this run when it starts."""
        return []

    def frozen(self, epoch: int) -> tuple[str, ...]:
        """The names of the tables' weights that stay fixed in an epoch."""
        return ()

    def check_device(self, device: torch.device) -> None:
        """Raise UsageError if the model cannot be trained on this device with these settings."""

    def make_model(self) -> StagedModel:
        """The model with its initial weights, the same on every rank."""
        raise NotImplementedError

    def part_rules(self, peak: float) -> Sequence[RuleOfPart]:
        """The rules of parts of the model that --optimizer does not train; `peak` is the highest learning rate."""
        return ()

    def load(self, epoch: int, k: int, own: slice) -> TrainBatch:
        """The samples of global batch k that belong to one worker: `own` is its slice of the batch's rows."""
        raise NotImplementedError

    def measure(self, model: nn.Module, split: str, group: Group) -> Metrics | None:
        """The metrics of the model on a split, computed together by the group; None if the split is empty."""
        raise NotImplementedError

    def score(self, model: nn.Module, split: str, group: Group) -> Scores | None:
        """The probabilities and labels of a split in the order of its rows; None if it is empty or has no fixed order.

        Two runs that were scored on the same rows can be compared row by row.
        """
        return None

    def validate(self, model: nn.Module, group: Group) -> Metrics | None:
        """Fit what is fitted on the validation rows, and measure the model on them; None if there are no such rows."""
        return self.measure(model, "valid", group)

    def reference(self) -> Reference | None:
        """A sample of the data that the run folder keeps, to compare new reviews with; None if it is not text."""
        return None

    def describe(self) -> dict[str, Any]:
        """What the run's config.json records, enough to load the model again."""
        raise NotImplementedError

    def card(self) -> CardText:
        """What the model card says about this task."""
        raise NotImplementedError

    def close(self) -> None:
        """Close the files of the data."""
