"""`tenor bench`."""

from __future__ import annotations

import shlex
import signal
import sys
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from tenor.bench.registry import describe_scenarios, scenarios_with
from tenor.bench.settings import BenchSettings
from tenor.cli.command import command
from tenor.cli.console import Console, table
from tenor.errors import Stopped, UsageError
from tenor.store.atomic import check_target, write_bytes
from tenor.store.strict import strict_json

if TYPE_CHECKING:
    from tenor.bench.results import Result

_CONTINUE = "finished runs are kept in the journal; the same command continues after them"


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
    from tenor.bench import scenarios

    if out is not None and out.suffix == ".html":
        raise UsageError(f"--out cannot be {out.name!r}", remedy="name a .json file; the page is written beside it")
    if out is not None:
        check_target(out)
        if scenario in scenarios_with("journal") and not settings.journal:
            settings = replace(settings, journal=f"{out}.partial")
    signal.signal(signal.SIGTERM, _stop)
    try:
        result = scenarios.bench(scenario, settings, console.progress())
    except Stopped as stopped:
        raise Stopped(stopped.signal, _CONTINUE if settings.journal else "nothing was written") from stopped
    result = replace(result, command=shlex.join(["tenor", *sys.argv[1:]]))
    if out is not None:
        write_bytes(out, (strict_json(result.as_dict(), indent=1) + "\n").encode())
        tenor.report(out, out.with_suffix(".html"))
    if settings.journal:
        Path(settings.journal).unlink(missing_ok=True)  # the measurement is complete
    machine = result.environment["machine"]
    where = f"{machine['processor']}, {machine['cores']} cores, {result.environment['date']}"
    console.result(result.as_dict(), "\n".join([*_tables(result), *result.notes, where]))


def _tables(result: Result) -> list[str]:
    """The figures as text: one table, or one per stage and kind of scaling."""
    from tenor.bench.measuring import table as all_figures
    from tenor.bench.scaling_tables import scaling_tables

    if result.scenario == "scaling" and (found := scaling_tables(result.rows)):
        return [f"{one.title}\n\n{table(*one.cells)}\n" for one in found]
    return [table(*all_figures(result)), ""]


def _stop(number: int, frame: object) -> None:
    raise Stopped(number)
