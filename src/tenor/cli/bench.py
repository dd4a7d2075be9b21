"""`tenor bench`."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated

import typer

from tenor.bench.settings import BenchSettings
from tenor.cli.command import command
from tenor.cli.console import Console, table
from tenor.store.atomic import write_bytes


@command(example="tenor bench scaling --workers 1,2 --repeats 3", settings=BenchSettings)
def bench(
    console: Console,
    scenario: Annotated[str, typer.Argument(help="What to measure.", metavar="SCENARIO")],
    settings: BenchSettings,
    out: Annotated[Path | None, typer.Option("--out", help="Also write the JSON result to this file.")] = None,
) -> None:
    """Measure a stage with medians over repeats taken in turns, and say on which machine."""
    from tenor.bench import core, scenarios

    result = scenarios.bench(scenario, settings, console.progress())
    if out is not None:
        write_bytes(out, (json.dumps(result.as_dict(), indent=1) + "\n").encode())
    machine = result.environment["machine"]
    where = f"{machine['processor']}, {machine['cores']} cores, {result.environment['date']}"
    console.result(result.as_dict(), f"{table(*core.table(result))}\n\n{where}")
