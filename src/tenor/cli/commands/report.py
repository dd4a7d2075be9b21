"""`tenor report`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from tenor.cli.command import command
from tenor.cli.console import Console
from tenor.errors import UsageError
from tenor.store.trusted import read_json

MAX_BYTES = 64 << 20  # of a benchmark result


@command(example="tenor report RUN --out report.html")
def report(
    console: Console,
    run: Annotated[
        Path,
        typer.Argument(
            help="Run folder made by `tenor train`, or word vectors made by `tenor embed`.", metavar="RUN-or-VECTORS"
        ),
    ],
    out: Annotated[Path | None, typer.Option("--out", help="HTML file to write. Default: RUN/report.html.")] = None,
    bench: Annotated[
        Path | None,
        typer.Option(
            "--bench", help="Result of `tenor bench scaling --out`. The page then shows the speed-up by workers."
        ),
    ] = None,
    colour_by: Annotated[
        Path | None,
        typer.Option("--run", help="With word vectors: run folder whose classifier colours the words by sentiment."),
    ] = None,
) -> None:
    """Write a report of a run or of word vectors as one HTML file.

    A run gets its learning curves, confusion matrix, scaling and settings. Word vectors get a map of the commonest
    words.
    """
    from tenor.reports.run_report import write_report
    from tenor.reports.word_map import holds_vectors, write_word_map

    if holds_vectors(run):
        if bench is not None:
            raise UsageError("--bench has no effect on word vectors", remedy="omit --bench")
        written = write_word_map(run, out or run / "report.html", colour_by)
        values = {"vectors": str(run), "report": str(written), "bytes": written.stat().st_size}
        console.result(values, str(written))
        return
    if colour_by is not None:
        remedy = "give a folder made by `tenor embed`, or omit --run"
        raise UsageError("--run needs word vectors", where=run, remedy=remedy)
    written = write_report(run, out or run / "report.html", _rows(bench) if bench else ())
    console.result({"run": str(run), "report": str(written), "bytes": written.stat().st_size}, str(written))


def _rows(file: Path) -> list[dict[str, Any]]:
    result = read_json(file.resolve(), MAX_BYTES, UsageError)
    scenario, rows = result.get("scenario"), result.get("rows")
    if not isinstance(scenario, str) or not isinstance(rows, list):
        remedy = "give --bench a file written by `tenor bench scaling --out`"
        raise UsageError("is not the result of a benchmark", where=file, remedy=remedy)
    found = [row for row in rows if isinstance(row, dict) and {"workers", "samples_per_s"} <= set(row)]
    if scenario != "scaling" or not found:  # in other scenarios, rows differ by more than their workers
        what = f"is a result of the scenario {scenario:.40} with {len(found)} usable rows"
        raise UsageError(what, where=file, remedy="give --bench a file written by `tenor bench scaling --out`")
    return found
