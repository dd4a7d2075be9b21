"""`tenor report`."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated, Any

import typer

from tenor.cli.command import command
from tenor.cli.console import Console
from tenor.errors import UsageError


@command(example="tenor report RUN --out report.html")
def report(
    console: Console,
    run: Annotated[Path, typer.Argument(help="The run folder that `tenor train` wrote.", metavar="RUN")],
    out: Annotated[Path | None, typer.Option("--out", help="Where to write; default RUN/report.html.")] = None,
    bench: Annotated[
        Path | None, typer.Option("--bench", help="A result of `tenor bench scaling --out`: draws speed-up by workers.")
    ] = None,
) -> None:
    """Draw a run as one self-contained HTML page: learning curves, confusion matrix, scaling, settings."""
    from tenor.reports.run_report import write_report

    written = write_report(run, out or run / "report.html", _rows(bench) if bench else ())
    console.result({"run": str(run), "report": str(written), "bytes": written.stat().st_size}, str(written))


def _rows(file: Path) -> list[dict[str, Any]]:
    try:
        result = json.loads(file.read_text("utf-8"))
        scenario, rows = result["scenario"], [row for row in result["rows"] if {"workers", "samples_per_s"} <= set(row)]
    except (ValueError, TypeError, KeyError) as error:
        raise UsageError("no result of a benchmark", where=file, remedy="give a file of tenor bench --out") from error
    if scenario != "scaling":  # elsewhere rows differ by more than their workers
        raise UsageError(f"is a result of bench {scenario}", where=file, remedy="give one of tenor bench scaling --out")
    return rows
