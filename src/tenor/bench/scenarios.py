"""The scenarios by name: one module each with `run(settings, progress) -> Result`, loaded only when it is wanted."""

from __future__ import annotations

import importlib
from typing import Protocol, cast

from tenor.bench.core import Result
from tenor.bench.settings import BenchSettings
from tenor.errors import UsageError
from tenor.progress import SILENT, Progress

SCENARIOS: dict[str, str] = {}


class Scenario(Protocol):
    """What a scenario's module offers."""

    def run(self, settings: BenchSettings, progress: Progress) -> Result: ...


def bench(scenario: str, settings: BenchSettings | None = None, progress: Progress = SILENT) -> Result:
    """Measure a scenario."""
    settings = settings or BenchSettings()
    _ = settings.worker_counts  # refuse a wrong list before anything is prepared
    if scenario not in SCENARIOS:
        raise UsageError(f"no scenario {scenario!r}", remedy=f"choose one of {', '.join(SCENARIOS)}")
    module = cast(Scenario, importlib.import_module(SCENARIOS[scenario]))
    return module.run(settings, progress)
