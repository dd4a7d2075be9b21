"""The scenarios by name. A scenario is a module with a function `run`, loaded only when it is asked for."""

from __future__ import annotations

import importlib
import tempfile
from pathlib import Path

from tenor.bench.core import Result
from tenor.bench.settings import BenchSettings
from tenor.errors import UsageError
from tenor.progress import SILENT, Progress
from tenor.settings import refuse_others

# name → the module with `def run(settings: BenchSettings, folder: Path, progress: Progress) -> Result`, which measures
# with `core.measure`; `folder` is a temporary one for inputs and outputs, removed afterwards.
SCENARIOS = {
    "balance": "tenor.bench.balance",
    "large-batch": "tenor.bench.large_batch",
    "prepare": "tenor.bench.prepare",
    "scaling": "tenor.bench.scaling",
    "strategies": "tenor.bench.strategies",
    "train": "tenor.bench.train",
}


def bench(scenario: str, settings: BenchSettings | None = None, progress: Progress = SILENT) -> Result:
    """Measure a scenario."""
    settings = settings or BenchSettings()
    settings.worker_counts()  # refuse a wrong list before anything is prepared
    if scenario not in SCENARIOS:
        raise UsageError(f"no scenario {scenario!r}", remedy=f"choose one of {', '.join(SCENARIOS)}")
    refuse_others(settings, scenario, "bench {}")
    module = importlib.import_module(SCENARIOS[scenario])
    with tempfile.TemporaryDirectory(prefix="tenor-bench-") as folder:
        result: Result = module.run(settings, Path(folder), progress)
        return result
