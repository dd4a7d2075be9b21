"""The scenarios by name. A scenario is a module with `contenders(settings, folder)`, loaded only when it is run."""

from __future__ import annotations

import importlib
import tempfile
from pathlib import Path

from tenor.bench.core import Contender, Result, measure
from tenor.bench.settings import BenchSettings
from tenor.errors import UsageError
from tenor.progress import SILENT, Progress

# name → the module with `def contenders(settings: BenchSettings, folder: Path) -> list[Contender]`;
# `folder` is a temporary one for inputs and outputs, removed afterwards.
SCENARIOS: dict[str, str] = {}


def bench(scenario: str, settings: BenchSettings | None = None, progress: Progress = SILENT) -> Result:
    """Measure a scenario."""
    settings = settings or BenchSettings()
    settings.worker_counts()  # refuse a wrong list before anything is prepared
    if scenario not in SCENARIOS:
        raise UsageError(f"no scenario {scenario!r}", remedy=f"choose one of {', '.join(SCENARIOS)}")
    module = importlib.import_module(SCENARIOS[scenario])
    with tempfile.TemporaryDirectory(prefix="tenor-bench-") as folder:
        contenders: list[Contender] = module.contenders(settings, Path(folder))
        return measure(scenario, contenders, settings.repeats, settings.warmups, progress)
