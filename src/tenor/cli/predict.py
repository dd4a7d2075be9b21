"""`tenor predict`."""

from __future__ import annotations

import json
import signal
from dataclasses import replace
from pathlib import Path
from typing import Annotated

import typer

from tenor.cli.command import command
from tenor.cli.console import Console
from tenor.errors import Stopped, UsageError
from tenor.prediction.settings import PredictSettings


@command(example="echo 'not bad at all' | tenor predict run -", settings=PredictSettings)
def predict(
    console: Console,
    run: Annotated[Path, typer.Argument(help="A folder made by `tenor train`.", show_default=False)],
    source: Annotated[
        str,
        typer.Argument(
            metavar="FILE|-",
            help="A file of reviews in any format of `prepare`, plain text with one a line, or - for standard input.",
            show_default=False,
        ),
    ],
    settings: PredictSettings,
    out: Annotated[
        Path | None, typer.Option("--out", help="Write JSON lines here, by as many workers as --engine has.")
    ] = None,
) -> None:
    """Predict each review: label and its probability, a line a review; JSON with --json or --out."""
    if out is None:
        _print(console, run, source, settings)
        return
    import tenor

    if source == "-":
        remedy = "redirect the output instead: tenor predict run - --json > FILE"
        raise UsageError("--out needs a file to read", remedy=remedy)
    signal.signal(signal.SIGTERM, _stop)
    rows = tenor.predict(run, source, out, settings, console.progress())
    console.result({"rows": rows, "out": str(out)})


def _print(console: Console, run: Path, source: str, settings: PredictSettings) -> None:
    """Line by line as they come, so that it works in a pipe."""
    import tenor
    from tenor.corpus.texts import read_texts

    if replace(settings, text_column=None) != PredictSettings():
        raise UsageError("--engine, --cluster, --workers and --tls-… are for a whole file", remedy="add --out FILE")
    if source == "-" and settings.text_column:
        raise UsageError("standard input has no columns, but one review a line", remedy="give a file")
    model = tenor.load(run)
    for texts in read_texts(source, settings.text_column):
        for said in model.predict(texts):
            print(json.dumps(said.as_dict()) if console.json else f"{said.label}\t{said.probability:.4f}", flush=True)


def _stop(number: int, frame: object) -> None:
    raise Stopped(number, "nothing is left of it: run the same command again")
