"""`tenor.predict`: predict whole files on any engine; one row per review, in the order of the input.

The pieces of the input are predicted into a hidden work folder beside the output. A job that was stopped continues with
the pieces that are missing.
"""

from __future__ import annotations

import hashlib
import json
import shutil
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, fields, replace
from pathlib import Path
from typing import TYPE_CHECKING, Unpack

from tenor.corpus.columns import Wanted
from tenor.corpus.files.source import Source
from tenor.corpus.frames import refuse_frame
from tenor.corpus.pieces import Piece
from tenor.corpus.standard_input import all_sources
from tenor.corpus.texts import line_error, lines_before_each, read_text_rows, text_sources
from tenor.engines.choose import make_engine
from tenor.engines.protocol import Engine
from tenor.engines.records import from_json, to_json
from tenor.engines.settings import EngineSettings
from tenor.engines.stage import JobStage
from tenor.environment import num_threads
from tenor.errors import CorpusError, UsageError
from tenor.prediction.output import OutputColumns, PieceWriter, check_columns, complete_rows, join, output_format
from tenor.prediction.pieces import cut_into_pieces
from tenor.prediction.settings import PredictSettings
from tenor.prediction.titles import open_with_title
from tenor.prediction.worker_model import ModelRef, model_of
from tenor.progress import SILENT, Progress, Shown, shown
from tenor.runtime.model import SentimentModel
from tenor.settings import chosen
from tenor.store.atomic import canonical, check_target, replacing, write_bytes
from tenor.store.lock import NAME as LOCK
from tenor.store.lock import locked
from tenor.threads import describe_team

if TYPE_CHECKING:
    from tenor.options import PredictOptions

Inputs = str | Path | Sequence[str | Path]


@dataclass(frozen=True)
class PredictTask:
    """Predict the reviews of one piece."""

    model: ModelRef
    piece: Piece
    out: str  # the file to write
    kind: str  # the format of the output
    columns: OutputColumns
    lines_before: int  # lines of the file before the piece
    may_reject: bool  # whether rows that cannot be read are left out
    threads: int
    workers: int  # processes that predict at the same time


@dataclass(frozen=True)
class UnreadRow:
    file: str
    line: int
    reason: str


@dataclass(frozen=True)
class PredictResult:
    rows: int
    unknown: int  # reviews without any known word
    abstained: int  # reviews without a label
    bytes: int  # of the piece, for the progress shown
    rejected: tuple[UnreadRow, ...] = ()


@dataclass(frozen=True)
class PredictedRows:
    """How many rows were read, and what became of them: `rows_read` = `rows` + `rejected`."""

    rows: int
    rejected: int
    unknown: int  # of `rows`: reviews without any known word
    abstained: int  # of `rows`: reviews without a label, see `abstain_below`

    @property
    def rows_read(self) -> int:
        return self.rows + self.rejected


def predict(
    run: str | Path,
    source: Inputs,
    out: str | Path,
    settings: PredictSettings | None = None,
    progress: Shown = None,
    **options: Unpack[PredictOptions],
) -> int:
    """Predict every review of one or more files.

    Args:
        run: A folder made by `tenor train`.
        source: Files, folders or patterns in any format that `prepare` reads, or plain text with one review per line;
            `-` is standard input. Several are given as a list.
        out: The file to write. It has one row per review, in the order of the input, with `label`, `probability` and
            `known_words`. It appears when all reviews are predicted. If the job is stopped, the same call continues it.
        settings: How to read the input, what to write, and where to predict.
        progress: True shows progress, False none; by default it is shown in notebooks only.
            A warning counts the reviews without any known word.
        options: Each setting may also be given as a keyword, which overrides `settings`.

    Returns:
        The number of reviews that were predicted.

    Raises:
        RunError: The run folder cannot be used.
        CorpusError: The input, or more of its lines than `max_rejects` allows, cannot be read.
        UsageError: The settings do not fit the input.
        WorkerError: Workers died too often, or the cluster does not answer.

    >>> tenor.predict("run", "reviews.jsonl.gz", "labels.jsonl", tenor.PredictSettings(workers=4))  # doctest: +SKIP
    9124
    """
    return predict_rows(run, source, out, chosen(PredictSettings, settings, options), shown(progress)).rows


def predict_rows(
    run: str | Path,
    source: Inputs,
    out: str | Path,
    settings: PredictSettings | None = None,
    progress: Progress = SILENT,
) -> PredictedRows:
    """The same as `predict`, with the accounting of all rows."""
    settings, target = settings or PredictSettings(), Path(out)
    refuse_frame(source, "give it to tenor.load(run).predict, or save it as a file")
    check_target(target)
    ref = ModelRef.of(run)
    model = model_of(ref)  # an error in the run folder is raised before any worker starts
    inputs = [source] if isinstance(source, str | Path) else list(source)
    with open_inputs(model, inputs, target, settings, progress) as sources:
        engine = make_engine(settings)
        try:
            results = predict_on(engine, PredictJob(ref, sources, target, settings), progress)
        finally:
            progress.finish()
            engine.close()
    rejects = [row for result in results for row in result.rejected]
    unknown, abstained = sum(r.unknown for r in results), sum(r.abstained for r in results)
    found = PredictedRows(sum(r.rows for r in results), len(rejects), unknown, abstained)
    if found.unknown:
        progress.warn(unknown_warning(found.unknown, found.rows))
    return found


@dataclass(frozen=True)
class PredictJob:
    """Which model predicts which texts into which file."""

    model: ModelRef
    sources: Sequence[Source]
    out: Path
    settings: PredictSettings


def predict_on(engine: Engine, job: PredictJob, progress: Progress = SILENT) -> list[PredictResult]:
    """Predict on an engine that is running already, and leave it running; one result per piece."""
    settings, columns = job.settings, OutputColumns.of(job.settings)
    kind = output_format(job.out, settings.output_format)
    for found in job.sources:
        check_columns(columns, found)
    pieces = cut_into_pieces(job.sources, engine.workers, progress, asked=settings.workers != "auto")
    workers = min(engine.workers, len(pieces))
    before = lines_before_each(pieces) if columns.lines or settings.max_rejects else [0] * len(pieces)
    with _work_folder(job.out, _fingerprint(job.model, job.sources, settings)) as folder:
        files = [folder / f"{number:06d}.{kind}" for number in range(len(pieces))]
        fixed = (settings.max_rejects > 0, settings.threads, workers)
        tasks = [
            PredictTask(job.model, piece, str(file), kind, columns, lines, *fixed)
            for piece, file, lines in zip(pieces, files, before, strict=True)
        ]
        if engine.name == "local":
            progress.say(f"predicting: {describe_team(workers, num_threads(settings.threads, workers))}")
        progress.start("predict", sum(piece.size for piece in pieces), "B")
        results = predict_piece.run(engine, tasks, lambda result: progress.advance(result.bytes))
        _list_rejects(results, job.out, settings.max_rejects)
        join(files, job.out, kind)
    return results


@contextmanager
def open_inputs(
    model: SentimentModel, inputs: Sequence[str | Path], out: Path, settings: PredictSettings, progress: Progress
) -> Iterator[list[Source]]:
    """Every input file as a source of texts; standard input is saved beside `out` meanwhile."""

    def find(names: Sequence[str | Path], wanted: Wanted) -> list[Source]:
        def look(title: str | None) -> list[Source]:
            return text_sources(names, replace(wanted, title=title))

        return open_with_title(look, model.config, settings.title_column, str(names[0]), progress)

    with all_sources(inputs, settings.wanted, out.resolve(), find) as sources:
        yield sources


def unknown_warning(unknown: int, rows: int) -> str:
    """The warning that counts the reviews without any known word."""
    have = "has" if unknown == 1 else "have"
    return (
        f"{unknown:,} of {rows:,} reviews {have} no word that the model knows (known_words 0); such labels are guesses"
    )


def coverage_line(rows: int, abstained: int) -> str:
    """Says how many reviews got a label, with `abstain_below`."""
    return f"{(rows - abstained) / max(1, rows):.1%} of the reviews answered, {abstained:,} of {rows:,} without a label"


@JobStage
def predict_piece(task: PredictTask) -> PredictResult:
    """Predict the reviews of one piece into a file, unless an earlier attempt has done it."""
    record = Path(task.out + ".json")
    if record.exists() and Path(task.out).exists():
        return from_json(PredictResult, json.loads(record.read_text("utf-8")))
    with replacing(Path(task.out)) as temporary, PieceWriter(temporary, task.kind) as writer:
        result = _write_piece(task, writer)
    write_bytes(record, canonical(to_json(result)))
    return result


def _write_piece(task: PredictTask, writer: PieceWriter) -> PredictResult:
    model, columns, count, unknown, abstained = model_of(task.model), task.columns, 0, 0, 0
    model.threads = num_threads(task.threads, task.workers)
    shown, rejected = task.piece.source.shown, list[UnreadRow]()
    for rows in read_text_rows(task.piece, with_records=columns.with_records):
        for reject in rows.rejects:
            if not task.may_reject:
                raise line_error(task.piece, reject)
            rejected.append(UnreadRow(shown, task.lines_before + reject.line, reject.reason))
        for row in complete_rows(model, rows, columns, shown, task.lines_before):
            writer.write(row)
            count, unknown = count + 1, unknown + (not row["known_words"])
            abstained += row.get("abstained", False)
    return PredictResult(count, unknown, abstained, task.piece.size, tuple(rejected))


def _fingerprint(ref: ModelRef, sources: Sequence[Source], settings: PredictSettings) -> str:
    """What decides the content of the pieces. Where they are computed does not."""
    where = {field.name for field in fields(EngineSettings)} | {"threads"}
    values = {name: value for name, value in vars(settings).items() if name not in where}
    files = [[found.shown, found.size, found.stamp] for found in sources]
    return hashlib.sha256(canonical([to_json(ref), files, values])).hexdigest()


@contextmanager
def _work_folder(out: Path, fingerprint: str) -> Iterator[Path]:
    """A hidden folder beside the output, where workers on other hosts see it too.

    It stays if the job is stopped, so that the same job continues. The pieces of another job are removed.

    Raises:
        UsageError: Another process is writing the same output.
    """
    folder = out.resolve().with_name(f".{out.name}.predicting")
    job = folder / "job"
    with ExitStack() as held:
        try:
            held.enter_context(locked(folder))
        except UsageError as error:
            remedy = "wait until that process ends, or choose another file"
            raise UsageError(error.what, where=out, remedy=remedy) from None
        if not job.exists() or job.read_text("utf-8") != fingerprint:
            for old in folder.iterdir():
                if old.name != LOCK:
                    old.unlink()
            write_bytes(job, fingerprint.encode())
        try:
            yield folder
        except CorpusError:
            shutil.rmtree(folder, ignore_errors=True)  # the input must be changed first
            raise
        shutil.rmtree(folder, ignore_errors=True)


def _list_rejects(results: Sequence[PredictResult], out: Path, limit: float) -> None:
    """Write the rejected rows beside the output; CorpusError if there are too many."""
    rejected = [row for result in results for row in result.rejected]
    total = len(rejected) + sum(result.rows for result in results)
    if len(rejected) > limit * total:
        first = rejected[0]
        what = f"{len(rejected):,} of {total:,} rows cannot be read; the first one: line {first.line}: {first.reason}"
        raise CorpusError(what, where=first.file, remedy="fix the rows, or allow more with --max-rejects")
    if rejected:
        lines = (json.dumps(to_json(row), ensure_ascii=False) + "\n" for row in rejected)
        write_bytes(out.with_name(out.name + ".rejects.jsonl"), "".join(lines).encode())
