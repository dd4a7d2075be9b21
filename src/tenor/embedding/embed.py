"""`tenor.embed`: count the words, train on this machine or together with others, and save the vectors."""

from __future__ import annotations

import contextlib
import json
import math
import shutil
from collections.abc import Iterator
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Unpack

import numpy as np
import numpy.typing as npt
import torch

from tenor.embedding.settings import EmbedSettings
from tenor.embedding.sources import BLOCK_WORDS, TextWords, read_words
from tenor.embedding.subwords import Rows, Shape, compose, rows_of
from tenor.embedding.vectors import CONFIG, Subwords, Vectors, save_vectors
from tenor.embedding.workers.checkpoints import FOLDER, SavedProgress, load_checkpoint, remove_leftovers
from tenor.embedding.workers.division import Division
from tenor.embedding.workers.machines import Machines, scaled_rate
from tenor.embedding.workers.supervisor import Supervisor, TeamPlan
from tenor.embedding.workers.tables import Tables
from tenor.embedding.workers.team import TeamWork, WorkerTeam
from tenor.environment import num_workers, usable_cores
from tenor.errors import Stopped, TenorError, UsageError, WorkerError
from tenor.groups import choose_backend, join
from tenor.progress import SILENT, Progress, Shown, shown
from tenor.settings import chosen
from tenor.store.lock import NAME as LOCK
from tenor.store.lock import locked
from tenor.world import World, detect

if TYPE_CHECKING:
    from tenor.options import EmbedOptions

FIRST_LOSS = math.log(2)  # of the first predictions, which are all one half
FIRST_ROWS = 1 << 14  # rows of random numbers that are made at a time


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
    source: str | Path,
    out: str | Path,
    settings: EmbedSettings | None = None,
    progress: Shown = None,
    **options: Unpack[EmbedOptions],
) -> EmbedResult:
    """Train word vectors on prepared data or plain text.

    The function starts `settings.workers` processes on this machine. Under torchrun, mpirun or SLURM every process of
    the launcher calls it with the same arguments: each starts workers of its own, the words are divided among all
    workers, and the vectors are averaged from time to time.

    Args:
        source: A folder made by `tenor prepare` (its training and unlabelled reviews are read), or a text file, plain
            or compressed. Every machine reads it.
        out: The folder for the vectors; it must be new or empty, unless `settings.resume` is set. Rank 0 writes it.
        settings: How to train.
        progress: True shows progress, False none; by default it is shown in notebooks only.
        options: Each setting may also be given as a keyword, which overrides `settings`.

    Returns:
        The number of words, words per second, seconds and the mean loss per pair.

    Raises:
        UsageError: A setting is wrong, the folder is taken, or the text has too few words.
        CorpusError, StoreError: The text or the data cannot be read.
        WorkerError: A worker failed, or another machine is lost.
        Stopped: A signal came; a checkpoint was saved.

    >>> tenor.embed("text8", "vectors", dim=50)  # doctest: +SKIP
    """
    return embed_as(detect(), Path(source), Path(out), chosen(EmbedSettings, settings, options), shown(progress))


def embed_as(
    world: World, source: Path, folder: Path, settings: EmbedSettings, progress: Progress, max_seconds: float = 0.0
) -> EmbedResult:
    """Train word vectors as one rank of a world; `World()` trains alone, whatever the launcher has started.

    A world of one rank ends after `max_seconds`, with the vectors of that moment; 0 for no limit.
    """
    backend = choose_backend(settings.backend, world, torch.device("cpu"))
    progress = progress if world.is_first else SILENT
    with _claimed(folder, settings.resume) if world.is_first else contextlib.nullcontext():
        words, blocks = read_words(source, settings.min_count, settings.max_words, progress)
        with contextlib.closing(blocks):
            work = TeamWork(words, blocks, _rows(words, settings), settings)
            with _joined(world, work, backend) as machines:
                own = folder if world.is_first else None
                return EmbedResult(folder, _train(own, work, machines, progress, max_seconds))


@contextlib.contextmanager
def _claimed(folder: Path, resume: bool) -> Iterator[None]:
    """Lock the folder; remove it if nothing is in it at the end."""
    _refuse_taken(folder, resume)
    with locked(folder):
        _refuse_taken(folder, resume)
        if resume:
            remove_leftovers(folder)
        try:
            yield
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


@contextlib.contextmanager
def _joined(world: World, work: TeamWork, backend: str) -> Iterator[Machines]:
    """The machines that train together, with this machine's tables."""
    settings, num_words = work.settings, len(work.words.words)
    wanted = usable_cores() // world.local_size if settings.workers == "auto" else num_workers(settings.workers)
    size = max(1, min(wanted, settings.epochs * work.blocks.num_blocks))
    num_inputs = num_words + _subwords(settings).buckets
    with contextlib.closing(Tables(num_inputs, num_words, settings.dim, size)) as tables:
        group = join(world, backend, settings.timeout)
        try:
            yield Machines(group, tables)
        except Stopped:  # all machines stop together
            group.close()
            raise
        except TenorError as error:
            group.abandon(error.exit_code)
            raise
        group.close()


def _train(
    folder: Path | None, work: TeamWork, machines: Machines, progress: Progress, max_seconds: float
) -> dict[str, Any]:
    """Train and save the vectors; without a folder, another machine saves them."""
    settings, tables, blocks = work.settings, machines.tables, work.blocks
    identity, total = _identity(work), settings.epochs * blocks.num_blocks
    machines.check_same(json.dumps(identity))
    done = machines.start_from(_first_state(folder, tables, settings, identity))
    every = machines.workers(len(tables.counters))
    division = Division(done.blocks, sum(every[: machines.group.rank]), len(tables.counters), sum(every))
    per_block = work.words.total / max(1, blocks.num_blocks)
    blocks_each = max(1, round(settings.average_words / BLOCK_WORDS))
    plan = TeamPlan(folder, identity, total, per_block, blocks_each, settings.checkpoint_seconds, max_seconds)
    rate = scaled_rate(settings.lr, len(every))
    team = WorkerTeam(tables, replace(work, settings=replace(settings, lr=rate)), division, machines.is_alone)
    now = Supervisor(plan, team, machines, done).run(progress)
    if not all(math.isfinite(bound) for bound in (now.loss, tables.inputs.min(), tables.inputs.max())):
        raise WorkerError("the vectors are not finite", remedy="lower --lr")
    if now.blocks < total:
        progress.say(f"the time limit ended the word vectors after {now.blocks / total:.0%} of their words")
    if now.mean > FIRST_LOSS:
        progress.warn(f"the mean loss is {now.mean:.4g}, but random vectors have {FIRST_LOSS:.2f}; lower --lr")
    result = {
        "words": work.words.total,
        "vocabulary": len(work.words.words),
        "words_per_s": (now.blocks - done.blocks) * per_block / max(now.seconds - done.seconds, 1e-9),
        "seconds": now.seconds,
        "loss": now.mean,
        "workers": sum(every),
        "ranks": len(every),
    }
    if folder is not None:
        save_vectors(folder, _made(work, tables), _recorded(settings), result)
        shutil.rmtree(folder / FOLDER, ignore_errors=True)
    return result


def _first_state(
    folder: Path | None, tables: Tables, settings: EmbedSettings, identity: dict[str, object]
) -> SavedProgress:
    """Fill the tables from the checkpoint or, without one, with random numbers."""
    done = load_checkpoint(folder, tables, identity) if folder is not None and settings.resume else None
    if done is None:
        fill_first_vectors(tables.inputs, settings.seed)
    return done or SavedProgress(0, 0.0, 0.0, 0.0)


def fill_first_vectors(table: npt.NDArray[np.float32], seed: int) -> None:
    """Small random numbers, as word2vec starts; the output table starts with zeros."""
    rng, dim = np.random.default_rng(seed), np.float32(table.shape[1])
    for first in range(0, len(table), FIRST_ROWS):
        rows = table[first : first + FIRST_ROWS]
        rows[:] = (rng.random(rows.shape, np.float32) - np.float32(0.5)) / dim


def _made(work: TeamWork, tables: Tables) -> Vectors:
    words, shape = work.words.words, _subwords(work.settings)
    if work.rows is None or not shape.buckets:
        return Vectors(words, tables.inputs)
    return Vectors(words, compose(tables.inputs, work.rows), Subwords(shape, tables.inputs[len(words) :]))


def _rows(words: TextWords, settings: EmbedSettings) -> Rows | None:
    shape = _subwords(settings)
    return rows_of(words.words, shape, len(words.words)) if shape.buckets or settings.model == "cbow" else None


def _subwords(settings: EmbedSettings) -> Shape:
    return Shape(settings.min_chars, settings.max_chars, settings.buckets if settings.subwords else 0)


def _identity(work: TeamWork) -> dict[str, object]:
    """What a resumed training must have in common with the one it continues."""
    return {**{f"--{name}": value for name, value in _recorded(work.settings).items()}, "text": work.words.sha256}


def _recorded(settings: EmbedSettings) -> dict[str, Any]:
    other = ("workers", "resume", "checkpoint_seconds", "average_words", "backend", "timeout")
    return {name: value for name, value in asdict(settings).items() if name not in other}
