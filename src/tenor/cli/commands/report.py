"""`tenor report`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from tenor.cli.command import command
from tenor.cli.console import Console
from tenor.reports.settings import ReportSettings

_SOURCES = (
    "Run folders made by `tenor train`, word vectors made by `tenor embed`, and results of `tenor bench --out` or "
    "`tenor plan`."
)


@command(example="tenor report RUN-LSTM RUN-GRU --out compare.html", settings=ReportSettings)
def report(
    console: Console,
    sources: Annotated[list[Path], typer.Argument(help=_SOURCES, metavar="SOURCES...", show_default=False)],
    settings: ReportSettings,
    out: Annotated[
        Path | None,
        typer.Option(
            "--out",
            help="HTML file to write. Default: report.html in the folder, RESULT.html, or report.html for several.",
        ),
    ] = None,
) -> None:
    """Write a report of runs, results and word vectors as one HTML file, in a light and a dark theme.

    One run gets its learning curves, confusion matrix, calibration and workers. Several runs are shown side by side.
    Word vectors get a map of the commonest words; the classifier of the first run, if there is one, colours the words.
    Every plot can be saved as PNG and its data as CSV; tables can be sorted and copied.
    """
    import tenor

    written = tenor.report(sources, out, settings)
    figures = {"sources": [str(source) for source in sources], "report": str(written)}
    console.result({**figures, "bytes": written.stat().st_size}, str(written))
