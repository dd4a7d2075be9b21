"""`tenor.predict`: predict a whole file on any engine; one JSON line per review, in the order of the file."""

from __future__ import annotations

import json
import shutil
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path

from tenor.corpus.files.source import Source
from tenor.corpus.pieces import Piece
from tenor.corpus.texts import read_piece_texts, text_source
from tenor.engines.choose import make_engine
from tenor.engines.protocol import Engine
from tenor.engines.stage import JobStage
from tenor.prediction.pieces import cut_into_pieces
from tenor.prediction.settings import PredictSettings
from tenor.prediction.threads import num_threads
from tenor.prediction.titles import open_with_title
from tenor.prediction.worker_model import ModelRef, model_of
from tenor.progress import SILENT, Progress
from tenor.runtime.model import SentimentModel
from tenor.store.atomic import check_target, replacing
from tenor.threads import describe_team


@dataclass(frozen=True)
class PredictTask:
    """Predict the reviews of one piece."""

    model: ModelRef
    piece: Piece
    out: str  # the file to write
    threads: int
    workers: int  # processes that predict at the same time


@dataclass(frozen=True)
class PredictResult:
    rows: int
    unknown: int  # reviews without any known word
    bytes: int  # of the piece, for the progress shown


def predict(
    run: str | Path,
    source: str | Path,
    out: str | Path,
    settings: PredictSettings | None = None,
    progress: Progress = SILENT,
) -> int:
    """Predict every review of a file.

    Args:
        run: A folder made by `tenor train`.
        source: A file of reviews in any format that `prepare` reads, or plain text with one review per line.
        out: The file to write. It has one JSON object per review, in the order of the file, with the keys `label`,
            `probability` and `known_words`. It appears when all reviews are predicted.
        settings: How to read the file, and where to predict it.
        progress: Shows how far the work is. A warning counts the reviews without any known word.

    Returns:
        The number of reviews.

    Raises:
        RunError: The run folder cannot be used.
        CorpusError: The file, or one of its lines, cannot be read.
        UsageError: The settings do not fit the file.
        WorkerError: Workers died too often, or the cluster does not answer.

    >>> tenor.predict("run", "reviews.jsonl.gz", "labels.jsonl", tenor.PredictSettings(workers=4))  # doctest: +SKIP
    9124
    """
    settings = settings or PredictSettings()
    check_target(Path(out))
    ref = ModelRef.of(run)
    model = model_of(ref)  # an error in the run folder is raised before any worker starts
    found = open_texts(model, str(source), settings, progress)
    engine = make_engine(settings)
    try:
        results = predict_on(engine, PredictJob(ref, found, Path(out), settings.threads), progress)
    finally:
        progress.finish()
        engine.close()
    rows, unknown = sum(result.rows for result in results), sum(result.unknown for result in results)
    if unknown:
        progress.warn(unknown_warning(unknown, rows))
    return rows


@dataclass(frozen=True)
class PredictJob:
    """Which model predicts which texts into which file."""

    model: ModelRef
    source: Source
    out: Path
    threads: int  # per worker; 0 divides the cores


def predict_on(engine: Engine, job: PredictJob, progress: Progress = SILENT) -> list[PredictResult]:
    """Predict on an engine that is running already, and leave it running; one result per piece."""
    pieces = cut_into_pieces([job.source], engine.workers, progress)
    workers = min(engine.workers, len(pieces))
    with _folder_beside(job.out) as folder:
        files = [folder / f"{number:06d}.jsonl" for number in range(len(pieces))]
        tasks = [
            PredictTask(job.model, piece, str(file), job.threads, workers)
            for piece, file in zip(pieces, files, strict=True)
        ]
        if engine.name == "local":
            progress.say(f"predicting: {describe_team(workers, num_threads(job.threads, workers))}")
        progress.start("predict", sum(piece.size for piece in pieces), "B")
        results = predict_piece.run(engine, tasks, lambda result: progress.advance(result.bytes))
        _join(files, job.out)
    return results


def open_texts(model: SentimentModel, path: str, settings: PredictSettings, progress: Progress) -> Source:
    """The file as a source of texts, with a title before each text if the run's data had titles."""

    def look(title: str | None) -> Source:
        return text_source(path, replace(settings.wanted, title=title))

    return open_with_title(look, model.config, settings.title_column, path, progress)


def unknown_warning(unknown: int, rows: int) -> str:
    """The warning that counts the reviews without any known word."""
    have = "has" if unknown == 1 else "have"
    return (
        f"{unknown:,} of {rows:,} reviews {have} no word that the model knows (known_words 0); such labels are guesses"
    )


@JobStage
def predict_piece(task: PredictTask) -> PredictResult:
    """Predict the reviews of one piece into a file."""
    model, rows, unknown = model_of(task.model), 0, 0
    model.threads = num_threads(task.threads, task.workers)
    with replacing(Path(task.out)) as temporary, temporary.open("w", encoding="utf-8") as file:
        for texts in read_piece_texts(task.piece):
            for prediction in model.predict(texts):
                file.write(json.dumps(prediction.as_dict(), allow_nan=False) + "\n")
                rows += 1
                unknown += not prediction.known_words
    return PredictResult(rows, unknown, task.piece.size)


@contextmanager
def _folder_beside(out: Path) -> Iterator[Path]:
    """A temporary folder beside the result, where workers on other hosts see it too; it is always removed."""
    folder = Path(tempfile.mkdtemp(prefix=f".{out.name}.", dir=out.resolve().parent))
    try:
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _join(files: Sequence[Path], out: Path) -> None:
    """Write the content of all files, one after another, to `out`."""
    with replacing(out) as temporary, temporary.open("wb") as joined:
        for path in files:
            with path.open("rb") as file:
                shutil.copyfileobj(file, joined)
