"""The scenarios of `tenor bench`, one file each, and the function that runs one of them.

A scenario module declares `OPTIONS`, the options it takes in addition to `--repeats` and `--warmups`, and defines
`run(settings: BenchSettings, folder: Path, progress: Progress) -> Result`, which measures with `measuring.measure`.
`folder` is a temporary folder for inputs and outputs. The module is imported when its scenario is run.
"""

from __future__ import annotations

import importlib
import tempfile
from pathlib import Path

from tenor.bench.registry import find_scenarios, module_name
from tenor.bench.results import Result
from tenor.bench.settings import BenchSettings
from tenor.errors import UsageError
from tenor.progress import SILENT, Progress
from tenor.settings import refuse_others

# The table of scenarios: name → module. The registry fills it with every scenario file of this folder.
SCENARIOS = {name: module_name(name) for name in find_scenarios()}


def bench(scenario: str, settings: BenchSettings | None = None, progress: Progress = SILENT) -> Result:
    """Run a scenario and return its result.

    Args:
        scenario: Name of the scenario, such as `scaling`.
        settings: Options; those that the scenario does not take must keep their defaults.
        progress: Receives one step per measured run.

    Raises:
        UsageError: There is no such scenario, or an option does not fit it.

    Example:
        bench("scaling", BenchSettings(workers="1,2", repeats=3)).rows
    """
    settings = settings or BenchSettings()
    settings.worker_counts()  # refuses a wrong list before any data is prepared
    if scenario not in SCENARIOS:
        raise UsageError(f"unknown scenario {scenario!r}", remedy=f"choose one of {', '.join(SCENARIOS)}")
    refuse_others(settings, scenario, "bench {}")
    module = importlib.import_module(SCENARIOS[scenario])
    with tempfile.TemporaryDirectory(prefix="tenor-bench-") as folder:
        result: Result = module.run(settings, Path(folder), progress)
        return result
