"""The tasks by name."""

from __future__ import annotations

from pathlib import Path

from tenor.training.points import Points
from tenor.training.reviews import Reviews
from tenor.training.settings import TrainSettings
from tenor.training.task import Task


def make_task(data: Path, settings: TrainSettings) -> Task:
    """The task that the settings name, on `data` where it reads any."""
    return Points(settings) if settings.task == "points" else Reviews(data, settings)
