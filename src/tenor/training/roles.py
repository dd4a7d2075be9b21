"""Which processes compute: with `async` the first one of several serves."""

from __future__ import annotations

from tenor.training.settings import TrainSettings


def has_server(settings: TrainSettings, processes: int) -> bool:
    """A worker alone is its own server."""
    return settings.strategy == "async" and processes > 1


def num_computing(settings: TrainSettings, processes: int) -> int:
    return processes - has_server(settings, processes)
