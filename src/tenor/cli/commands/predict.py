"""`tenor predict`."""

from __future__ import annotations

import json
import signal
import time
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from tenor.cli.command import command
from tenor.cli.console import Console
from tenor.corpus.settings import ReadingSettings
from tenor.engines.settings import EngineSettings
from tenor.errors import Stopped, UsageError
from tenor.prediction.settings import PredictSettings
from tenor.settings import changed, field_names, option_name

if TYPE_CHECKING:
    from collections.abc import Iterator

    import pyarrow as pa

    from tenor.corpus.files.source import Source
    from tenor.progress import Progress
    from tenor.runtime.model import SentimentModel

_WITH_OUT = {"output_format", "keep_columns", "id_column", "line_numbers", "max_rejects"}


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
        typer.Option("--out", help="Write to this file: JSON lines, .csv or .parquet. The engine options need it."),
    ] = None,
) -> None:
    """Predict the sentiment of reviews: one line per review with label, probability and number of known words.

    The fields are separated by tabs; with --json or --out each line is a JSON object. The label of a review with 0
    known words is only a guess.
    """
    if out is None:
        _print(console, run, sources, settings)
        return
    from tenor.prediction.predict import predict_rows
    from tenor.preparation.job.startup import announce

    if not settings.cluster:
        announce(console.progress())
    signal.signal(signal.SIGTERM, _stop)
    began = time.perf_counter()
    found = predict_rows(run, sources, out, settings, console.progress())
    seconds = time.perf_counter() - began
    rate = found.rows / seconds
    values = {"rows_read": found.rows_read, "rows": found.rows, "rejected": found.rejected, "out": str(out)}
    left_out = f"; {found.rejected:,} rows rejected: {out}.rejects.jsonl" if found.rejected else ""
    line = f"{found.rows:,} reviews in {seconds:.1f} s, {rate:,.0f} reviews/s{left_out}\n{out}"
    console.result({**values, "seconds": seconds, "reviews_per_s": rate}, line)


def _print(console: Console, run: Path, sources: list[str], settings: PredictSettings) -> None:
    """Print each prediction as soon as its batch is done, so that the command works in a pipe."""
    import tenor
    from tenor.prediction.output import OutputColumns, make_rows
    from tenor.prediction.predict import unknown_warning
    from tenor.prediction.threads import num_threads
    from tenor.preparation.job.startup import announce

    _refuse_without_effect(sources, settings)
    model, progress, rows, unknown = tenor.load(run), console.progress(), 0, 0
    is_announced = False
    model.threads = num_threads(settings.threads, 1)
    columns = OutputColumns.of(settings)
    for texts in _batches(model, sources, settings, progress):
        if not is_announced and not model.encoder.suits_python(texts):
            announce(progress, model.parts.kernels)
            is_announced = True
        for row in make_rows(model, texts, columns):
            rows, unknown = rows + 1, unknown + (not row["known_words"])
            print(json.dumps(row, ensure_ascii=False, allow_nan=False) if console.json else _line(row), flush=True)
    if unknown:
        progress.warn(unknown_warning(unknown, rows))


def _refuse_without_effect(sources: list[str], settings: PredictSettings) -> None:
    given = changed(settings)
    if names := sorted(given & (field_names(EngineSettings) | _WITH_OUT)):
        raise UsageError(f"{option_name(names[0])} has no effect without --out", remedy="add --out FILE, or omit it")
    if "-" in sources and (names := sorted(given & field_names(ReadingSettings))):
        what = f"{option_name(names[0])} has no effect on standard input, which is UTF-8 text with one review per line"
        raise UsageError(what, remedy="give a file instead of -")


def _batches(
    model: SentimentModel, sources: list[str], settings: PredictSettings, progress: Progress
) -> Iterator[pa.Array]:
    """The texts of all inputs, as they arrive."""
    from tenor.corpus.pieces import whole
    from tenor.corpus.texts import read_piece_texts, read_texts, text_sources
    from tenor.prediction.titles import open_with_title, title_of, warn_of_no_title

    for name in sources:
        if name == "-":
            if title := title_of(model.config):
                warn_of_no_title(title, "standard input", progress)
            yield from read_texts(name)
            continue

        def look(title: str | None, name: str = name) -> list[Source]:
            return text_sources([name], replace(settings.wanted, title=title))

        for source in open_with_title(look, model.config, settings.title_column, name, progress):
            yield from read_piece_texts(whole(source))


def _line(row: dict[str, Any]) -> str:
    more = [json.dumps(row[name], ensure_ascii=False) for name in ("probabilities", "explanation") if name in row]
    return "\t".join([row["label"], f"{row['probability']:.4f}", str(row["known_words"]), *more])


def _stop(number: int, frame: object) -> None:
    raise Stopped(number, "run the same command again to continue")
