"""`tenor bench`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from tenor.bench.registry import describe_scenarios
from tenor.bench.settings import BenchSettings
from tenor.cli.command import command
from tenor.cli.console import Console, table
from tenor.errors import UsageError
from tenor.store.atomic import check_target, write_bytes
from tenor.store.strict import strict_json


@command(
    example="tenor bench scaling --workers 1,2 --repeats 3",
    settings=BenchSettings,
    owned_by="for {}",
    topics=describe_scenarios(),
)
def bench(
    console: Console,
    scenario: Annotated[str, typer.Argument(help="Name of the scenario.", metavar="SCENARIO", show_default=False)],
    settings: BenchSettings,
    out: Annotated[
        Path | None, typer.Option("--out", help="Also write the result to this JSON file, and an HTML page beside it.")
    ] = None,
) -> None:
    """Measure one scenario: medians over repeated runs that take turns, with the machine and the date.

    The scenarios are:
    """
    import tenor
    from tenor.bench import measuring as core
    from tenor.bench import scenarios

    if out is not None and out.suffix == ".html":
        raise UsageError(f"--out cannot be {out.name!r}", remedy="name a .json file; the page is written beside it")
    if out is not None:
        check_target(out)
    result = scenarios.bench(scenario, settings, console.progress())
    if out is not None:
        write_bytes(out, (strict_json(result.as_dict(), indent=1) + "\n").encode())
        tenor.report(out, out.with_suffix(".html"))
    machine = result.environment["machine"]
    where = f"{machine['processor']}, {machine['cores']} cores, {result.environment['date']}"
    console.result(result.as_dict(), "\n".join([table(*core.table(result)), "", *result.notes, where]))
