"""`tenor predict`."""

from __future__ import annotations

import json
import signal
import time
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from tenor.cli.command import command
from tenor.cli.console import Console
from tenor.corpus.settings import ReadingSettings
from tenor.engines.settings import EngineSettings
from tenor.errors import Stopped, UsageError
from tenor.prediction.settings import PredictSettings
from tenor.settings import changed, field_names, option_name

if TYPE_CHECKING:
    from tenor.runtime.model import Prediction


@command(example="echo 'not bad at all' | tenor predict run -", settings=PredictSettings)
def predict(
    console: Console,
    run: Annotated[Path, typer.Argument(help="Run folder made by `tenor train`.", metavar="RUN", show_default=False)],
    source: Annotated[
        str,
        typer.Argument(
            metavar="FILE|-",
            help="File of reviews in any format of `tenor prepare` or as plain text lines; - for standard input.",
            show_default=False,
        ),
    ],
    settings: PredictSettings,
    out: Annotated[
        Path | None,
        typer.Option("--out", help="Write JSON lines to this file. Needed for the engine and worker options."),
    ] = None,
) -> None:
    """Predict the sentiment of reviews: one line per review with label, probability and number of known words.

    The fields are separated by tabs; with --json or --out each line is a JSON object. The label of a review with 0
    known words is only a guess.
    """
    if out is None:
        _print(console, run, source, settings)
        return
    import tenor

    if source == "-":
        remedy = "redirect the output instead: `tenor predict RUN - --json > FILE`"
        raise UsageError("--out cannot be combined with standard input", remedy=remedy)
    from tenor.preparation.job.startup import announce

    if not settings.cluster:
        announce(console.progress())
    signal.signal(signal.SIGTERM, _stop)
    began = time.perf_counter()
    rows = tenor.predict(run, source, out, settings, console.progress())
    seconds = time.perf_counter() - began
    values = {"rows": rows, "out": str(out), "seconds": seconds, "reviews_per_s": rows / seconds}
    console.result(values, f"{rows:,} reviews in {seconds:.1f} s, {rows / seconds:,.0f} reviews/s\n{out}")


def _print(console: Console, run: Path, source: str, settings: PredictSettings) -> None:
    """Print each prediction as soon as its batch is done, so that the command works in a pipe."""
    import tenor
    from tenor.corpus.pieces import whole
    from tenor.corpus.texts import read_piece_texts, read_texts
    from tenor.prediction.predict import open_texts, unknown_warning
    from tenor.prediction.threads import num_threads
    from tenor.prediction.titles import title_of, warn_of_no_title
    from tenor.preparation.job.startup import announce

    given = changed(settings)
    if names := sorted(given & field_names(EngineSettings)):
        raise UsageError(f"{option_name(names[0])} has no effect without --out", remedy="add --out FILE, or omit it")
    if source == "-" and (names := sorted(given & field_names(ReadingSettings))):
        what = f"{option_name(names[0])} has no effect on standard input, which is UTF-8 text with one review per line"
        raise UsageError(what, remedy="give a file instead of -")
    model, progress, rows, unknown = tenor.load(run), console.progress(), 0, 0
    announce(progress)
    model.threads = num_threads(settings.threads, 1)
    if source != "-":
        batches = read_piece_texts(whole(open_texts(model, source, settings, progress)))
    else:
        batches = read_texts(source)
        if title := title_of(model.config):
            warn_of_no_title(title, "standard input", progress)
    for texts in batches:
        for prediction in model.predict(texts):
            rows, unknown = rows + 1, unknown + (not prediction.known_words)
            print(json.dumps(prediction.as_dict(), allow_nan=False) if console.json else _line(prediction), flush=True)
    if unknown:
        progress.warn(unknown_warning(unknown, rows))


def _line(prediction: Prediction) -> str:
    return f"{prediction.label}\t{prediction.probability:.4f}\t{prediction.known_words}"


def _stop(number: int, frame: object) -> None:
    raise Stopped(number, "nothing was written; run the same command again")
