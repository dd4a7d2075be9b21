"""What is learned: one file per task, listed in `tenor.training.traits`."""

from __future__ import annotations

import pkgutil
from pathlib import Path

from tenor.training.settings import TrainSettings
from tenor.training.tasks.base import Task
from tenor.training.traits import TASKS


def make_task(data: Path, settings: TrainSettings, run: Path | None = None) -> Task:
    """The task that the settings name, on prepared `data` if it reads any; `run` is the run folder."""
    implementation: type[Task] = pkgutil.resolve_name(TASKS[settings.task].implementation)
    return implementation.make(data, settings, run)
