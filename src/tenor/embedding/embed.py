"""`tenor.embed`: count the words, start the workers, report progress, save checkpoints and the vectors."""

from __future__ import annotations

import contextlib
import shutil
import time
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np

from tenor.embedding.settings import EmbedSettings
from tenor.embedding.sources import Blocks, TextWords, read_words
from tenor.embedding.subwords import Shape, compose, rows_of
from tenor.embedding.vectors import CONFIG, Subwords, Vectors, save_vectors
from tenor.embedding.workers.checkpoints import FOLDER, SavedProgress, load_checkpoint, save_checkpoint
from tenor.embedding.workers.tables import BLOCKS, IS_READY, LOSS, NUM_LOSSES, Tables
from tenor.embedding.workers.team import WorkerTeam
from tenor.environment import num_workers
from tenor.errors import Stopped, UsageError, WorkerError
from tenor.progress import SILENT, Progress
from tenor.store.lock import NAME as LOCK
from tenor.store.lock import locked

LOOK_SECONDS = 0.1  # between two looks at the workers


@dataclass(frozen=True)
class EmbedResult:
    """The result of `tenor.embed`.

    Attributes:
        out: The folder of the vectors.
        values: The final figures, such as words, words_per_s, seconds and loss.
    """

    out: Path
    values: dict[str, Any]

    def as_dict(self) -> dict[str, Any]:
        """Return all figures and the folder as JSON values, as `tenor embed --json` prints them.

        >>> tenor.embed("text8", "vectors").as_dict()["vectors"]  # doctest: +SKIP
        'vectors'
        """
        return {**self.values, "vectors": str(self.out)}


def embed(
    source: str | Path, out: str | Path, settings: EmbedSettings | None = None, progress: Progress = SILENT
) -> EmbedResult:
    """Train word vectors on prepared data or plain text.

    Args:
        source: A folder made by `tenor prepare` (its training and unlabelled reviews are read), or a text file, plain
            or compressed.
        out: The folder for the vectors; it must be new or empty, unless `settings.resume` is set.
        settings: How to train.
        progress: Where to report words per second, the loss and the time left.

    Returns:
        The number of words, words per second, seconds and the mean loss per pair.

    Raises:
        UsageError: A setting is wrong, the folder is taken, or the text has too few words.
        CorpusError, StoreError: The text or the data cannot be read.
        WorkerError: A worker failed.
        Stopped: A signal came; a checkpoint was saved.

    >>> tenor.embed("text8", "vectors", tenor.EmbedSettings(dim=50))  # doctest: +SKIP
    """
    settings, folder = settings or EmbedSettings(), Path(out)
    _refuse_taken(folder, settings.resume)
    with locked(folder):
        _refuse_taken(folder, settings.resume)
        try:
            words, blocks = read_words(Path(source), settings.min_count, settings.max_words, progress)
            with contextlib.closing(blocks):
                return _train(folder, words, blocks, settings, progress)
        finally:
            with contextlib.suppress(OSError):
                if not any(file.name != LOCK for file in folder.iterdir()):
                    (folder / LOCK).unlink(missing_ok=True)
                    folder.rmdir()


def _refuse_taken(folder: Path, resume: bool) -> None:
    if folder.exists() and not folder.is_dir():
        raise UsageError("is a file", where=folder, remedy="give --out a folder")
    if folder.is_dir() and not resume and any(file.name != LOCK for file in folder.iterdir()):
        raise UsageError("is not empty", where=folder, remedy="give --out another folder, or add --resume")
    if resume and (folder / CONFIG).exists():
        raise UsageError("holds finished vectors", where=folder, remedy="give --out another folder to train again")


def _train(folder: Path, words: TextWords, blocks: Blocks, settings: EmbedSettings, progress: Progress) -> EmbedResult:
    total = settings.epochs * blocks.num_blocks
    workers = max(1, min(num_workers(settings.workers), total))
    identity = _identity(settings, words)
    shape = _subwords(settings)
    num_inputs = len(words.words) + shape.buckets
    rows = rows_of(words.words, shape, len(words.words)) if shape.buckets or settings.model == "cbow" else None
    with contextlib.closing(Tables(num_inputs, len(words.words), settings.dim, workers)) as tables:
        done = load_checkpoint(folder, tables, identity) if settings.resume else None
        if done is None:
            done = SavedProgress(0, 0.0, 0.0, 0.0)
            tables.inputs[:] = first_vectors(num_inputs, settings.dim, settings.seed)
        per_block = words.total / max(1, blocks.num_blocks)
        team = WorkerTeam(workers, tables, words, rows, blocks, settings, done.blocks)
        progress.start("embed", total * per_block, "word")
        progress.advance(done.blocks * per_block)
        try:
            seen = done.blocks
            with team:
                while team.is_running() and not tables.counters[:, IS_READY].all():
                    time.sleep(LOOK_SECONDS / 10)
                began = saved_at = time.monotonic()  # starting processes and compiling are not training
                while team.is_running():
                    time.sleep(LOOK_SECONDS)
                    now = _now(done, tables, began)
                    if now.blocks > seen:
                        note = f"loss {_mean(now):.4f}" if now.num_losses else ""
                        progress.advance((now.blocks - seen) * per_block, note)
                        seen = now.blocks
                    if time.monotonic() - saved_at > settings.checkpoint_seconds and not team.signal:
                        save_checkpoint(folder, tables, now, identity)
                        saved_at = time.monotonic()
                now = _now(done, tables, began)
                if team.signal and now.blocks < total:
                    save_checkpoint(folder, tables, now, identity)
                    raise Stopped(team.signal, "saved a checkpoint; --resume continues from it")
        finally:
            progress.finish()
        result = {
            "words": words.total,
            "vocabulary": len(words.words),
            "words_per_s": (total - done.blocks) * per_block / max(now.seconds - done.seconds, 1e-9),
            "seconds": now.seconds,
            "loss": _mean(now),
            "workers": workers,
        }
        if not np.isfinite(tables.inputs).all():
            raise WorkerError("the vectors are not finite", remedy="lower --lr")
        if shape.buckets and rows is not None:
            subwords = Subwords(shape, np.array(tables.inputs[len(words.words) :]))
            vectors = Vectors(words.words, compose(tables.inputs, rows), subwords)
        else:
            vectors = Vectors(words.words, np.array(tables.inputs))
        save_vectors(folder, vectors, _recorded(settings), result)
    shutil.rmtree(folder / FOLDER, ignore_errors=True)
    return EmbedResult(folder, result)


def _subwords(settings: EmbedSettings) -> Shape:
    return Shape(settings.min_chars, settings.max_chars, settings.buckets if settings.subwords else 0)


def first_vectors(num_words: int, dim: int, seed: int) -> np.ndarray[Any, Any]:
    """Small random numbers, as word2vec starts; the output table starts with zeros."""
    return (np.random.default_rng(seed).random((num_words, dim), np.float32) - np.float32(0.5)) / np.float32(dim)


def _identity(settings: EmbedSettings, words: TextWords) -> dict[str, object]:
    """What a resumed training must have in common with the one it continues."""
    return {**{f"--{name}": value for name, value in _recorded(settings).items()}, "text": words.sha256}


def _recorded(settings: EmbedSettings) -> dict[str, Any]:
    other = ("workers", "resume", "checkpoint_seconds")
    return {name: value for name, value in asdict(settings).items() if name not in other}


def _now(done: SavedProgress, tables: Tables, began: float) -> SavedProgress:
    sums = tables.counters.sum(axis=0)
    return SavedProgress(
        done.blocks + int(sums[BLOCKS]),
        done.loss + float(sums[LOSS]),
        done.num_losses + float(sums[NUM_LOSSES]),
        done.seconds + time.monotonic() - began,
    )


def _mean(done: SavedProgress) -> float:
    return done.loss / done.num_losses if done.num_losses else float("nan")
