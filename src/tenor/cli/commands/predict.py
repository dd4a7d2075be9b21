"""`tenor predict`."""

from __future__ import annotations

import json
import signal
import time
from pathlib import Path
from typing import Annotated, Any

import typer

from tenor.cli.command import command
from tenor.cli.console import Console
from tenor.errors import Stopped
from tenor.prediction.settings import PredictSettings

_FIRST = ("label", "probability", "known_words", "abstained")  # an empty label says that the model abstains
_NEXT = ("file", "line", "probabilities", "explanation")


@command(example="echo 'not bad at all' | tenor predict run -", settings=PredictSettings)
def predict(
    console: Console,
    run: Annotated[Path, typer.Argument(help="Run folder made by `tenor train`.", metavar="RUN", show_default=False)],
    sources: Annotated[
        list[str],
        typer.Argument(
            metavar="FILES|-",
            help="Files or folders of reviews in any format of `tenor prepare` or as plain text lines; - for standard "
            "input.",
            show_default=False,
        ),
    ],
    settings: PredictSettings,
    out: Annotated[
        Path | None,
        typer.Option("--out", help="Write to this file: JSON lines, .csv or .parquet."),
    ] = None,
) -> None:
    """Predict the sentiment of reviews: one line per review with label, probability and number of known words.

    The fields are separated by tabs; with --json or --out each line is a JSON object. The label of a review with 0
    known words is only a guess. Without --out, one process prints each line as soon as it can; --workers and the
    other engine options print all lines at the end.
    """
    if out is None:
        _print(console, run, sources, settings)
        return
    from tenor.prediction.predict import coverage_line, predict_rows
    from tenor.preparation.job.startup import announce

    if not settings.cluster:
        announce(console.progress())
    signal.signal(signal.SIGTERM, _stop)
    began = time.perf_counter()
    found = predict_rows(run, sources, out, settings, console.progress())
    seconds = time.perf_counter() - began
    rate = found.rows / seconds
    values: dict[str, Any] = {"rows_read": found.rows_read, "rows": found.rows, "rejected": found.rejected}
    answered = ""
    if settings.abstain_below:
        coverage = (found.rows - found.abstained) / max(1, found.rows)
        values |= {"abstain_below": settings.abstain_below, "abstained": found.abstained, "coverage": coverage}
        answered = coverage_line(found.rows, found.abstained) + "\n"
    left_out = f"; {found.rejected:,} rows rejected: {out}.rejects.jsonl" if found.rejected else ""
    line = f"{found.rows:,} reviews in {seconds:.1f} s, {rate:,.0f} reviews/s{left_out}\n{answered}{out}"
    console.result({**values, "out": str(out), "seconds": seconds, "reviews_per_s": rate}, line)


def _print(console: Console, run: Path, sources: list[str], settings: PredictSettings) -> None:
    """Print each prediction as soon as its batch is done, so that the command works in a pipe."""
    from tenor.prediction.output import json_line
    from tenor.prediction.predict import coverage_line
    from tenor.prediction.stream import stream_rows

    signal.signal(signal.SIGTERM, _stop)
    count = abstained = 0
    for row in stream_rows(run, sources, settings, console.progress()):
        count, abstained = count + 1, abstained + row.get("abstained", False)
        print(json_line(row) if console.json else _line(row), flush=True)
    if settings.abstain_below:
        console.say(coverage_line(count, abstained))


def _line(row: dict[str, Any]) -> str:
    """The fields of the plain output: three as they are, and the others as JSON."""
    rest = {name: value for name, value in row.items() if name not in _FIRST}
    more = [json.dumps(rest.pop(name), ensure_ascii=False) for name in _NEXT if name in rest]
    more += [json.dumps(rest, ensure_ascii=False, default=str)] if rest else []
    return "\t".join([row["label"] or "", f"{row['probability']:.4f}", str(row["known_words"]), *more])


def _stop(number: int, frame: object) -> None:
    raise Stopped(number, "run the same command again; with --out it continues")
