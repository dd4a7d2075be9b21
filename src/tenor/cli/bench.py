"""`tenor bench`."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated

import typer

from tenor.bench.settings import BenchSettings
from tenor.cli.command import command
from tenor.cli.console import Console, table
from tenor.errors import UsageError
from tenor.store.atomic import check_target, write_bytes


@command(example="tenor bench scaling --workers 1,2 --repeats 3", settings=BenchSettings)
def bench(
    console: Console,
    scenario: Annotated[str, typer.Argument(help="What to measure.", metavar="SCENARIO")],
    settings: BenchSettings,
    out: Annotated[
        Path | None, typer.Option("--out", help="Also write the JSON to this file, and a page beside.")
    ] = None,
) -> None:
    """Measure a stage with medians over repeats taken in turns, and say on which machine."""
    from tenor.bench import core, scenarios

    if out is not None and out.suffix == ".html":
        raise UsageError(f"--out cannot be {out.name!r}", remedy="name a .json file; the page is written beside it")
    if out is not None:
        check_target(out)
    result = scenarios.bench(scenario, settings, console.progress())
    if out is not None:
        from tenor.reports.bench_report import write_bench_page  # draws, so it loads much

        write_bytes(out, (json.dumps(result.as_dict(), indent=1) + "\n").encode())
        write_bench_page(result, out.with_suffix(".html"))
    machine = result.environment["machine"]
    where = f"{machine['processor']}, {machine['cores']} cores, {result.environment['date']}"
    console.result(result.as_dict(), "\n".join([table(*core.table(result)), "", *result.notes, where]))
