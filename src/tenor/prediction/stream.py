"""Predictions for a pipe: `tenor predict` without --out. Rows come in the order of the input."""

from __future__ import annotations

import json
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path

from tenor.corpus.pieces import whole
from tenor.corpus.settings import ReadingSettings
from tenor.corpus.standard_input import DASH
from tenor.corpus.texts import TextRows, counted_rows, line_error, read_text_rows, read_texts
from tenor.engines.settings import EngineSettings
from tenor.environment import num_threads
from tenor.errors import UsageError
from tenor.prediction.output import OutputColumns, check_columns, complete_rows
from tenor.prediction.predict import open_inputs, predict_rows, unknown_warning
from tenor.prediction.settings import PredictSettings
from tenor.prediction.tables import Row
from tenor.prediction.titles import title_of, warn_of_no_title
from tenor.preparation.job.startup import announce
from tenor.progress import Progress
from tenor.runtime.model import SentimentModel, load
from tenor.settings import changed, field_names, option_name

_NEEDS_FILE = {
    "output_format": "standard output has one line per review",
    "max_rejects": "rejected rows are listed beside the output",
    "cluster": "the workers of a cluster write beside the output",
}


def stream_rows(run: str | Path, inputs: Sequence[str], settings: PredictSettings, progress: Progress) -> Iterator[Row]:
    """Predict reviews, and yield one row per review.

    This process predicts each batch as soon as it is read. With several workers or another engine, the rows come when
    all of them are predicted. Standard input (`-`) is plain text, unless an option needs its columns or says how to
    read it: then it is saved first and read as a file.

    Raises:
        UsageError: An option needs an output file.
    """
    given = changed(settings)
    if names := sorted(given & set(_NEEDS_FILE)):
        what = f"{option_name(names[0])} needs --out, because {_NEEDS_FILE[names[0]]}"
        raise UsageError(what, remedy="add --out FILE, or omit it")
    of_engine = given & field_names(EngineSettings)
    if of_engine == {"workers"} and settings.workers == 1:
        of_engine = set()
    return (_on_engine if of_engine else _here)(run, inputs, settings, progress)


def _on_engine(run: str | Path, inputs: Sequence[str], settings: PredictSettings, progress: Progress) -> Iterator[Row]:
    """Predict into a temporary file on the engine of the settings."""
    plain = replace(settings, format="text")
    with tempfile.TemporaryDirectory(prefix="tenor-predict-") as folder:
        out = Path(folder) / "rows.jsonl"
        for group in [[name] for name in inputs] if DASH in inputs else [list(inputs)]:
            is_plain = group == [DASH] and not _reads_as_file(settings)
            predict_rows(run, group, out, plain if is_plain else settings, progress)
            with out.open(encoding="utf-8", newline="\n") as lines:
                yield from map(json.loads, lines)


def _here(run: str | Path, inputs: Sequence[str], settings: PredictSettings, progress: Progress) -> Iterator[Row]:
    """Predict in this process."""
    model, columns, is_announced, count, unknown = load(run), OutputColumns.of(settings), False, 0, 0
    model.threads = num_threads(settings.threads, 1)
    for name, rows in _read(model, inputs, settings, progress):
        if not is_announced and not model.encoder.suits_python(rows.texts):
            announce(progress, model.parts.kernels)
            is_announced = True
        for row in complete_rows(model, rows, columns, name):
            count, unknown = count + 1, unknown + (not row["known_words"])
            yield row
    if unknown:
        progress.warn(unknown_warning(unknown, count))


def _read(
    model: SentimentModel, inputs: Sequence[str], settings: PredictSettings, progress: Progress
) -> Iterator[tuple[str, TextRows]]:
    """(name of the file, some of its rows), as they arrive."""
    columns = OutputColumns.of(settings)
    for name in inputs:
        if name == DASH and not _reads_as_file(settings):
            if title := title_of(model.config):
                warn_of_no_title(title, "standard input", progress)
            yield from ((name, rows) for rows in counted_rows(read_texts(name)))
            continue
        with (
            tempfile.TemporaryDirectory(prefix="tenor-predict-") as folder,
            open_inputs(model, [name], Path(folder) / "rows", settings, progress) as sources,
        ):
            for source in sources:
                check_columns(columns, source)
                piece = whole(source)
                for rows in read_text_rows(piece, with_records=columns.with_records):
                    if rows.rejects:
                        raise line_error(piece, rows.rejects[0])
                    yield source.shown, rows


def _reads_as_file(settings: PredictSettings) -> bool:
    """Whether an option says how standard input is read, or needs its columns."""
    return bool(changed(settings) & field_names(ReadingSettings)) or OutputColumns.of(settings).with_records
