"""`tenor.train`: starts the workers, shows how far they are, names the one that fails, restarts from a checkpoint."""

from __future__ import annotations

import contextlib
import importlib.util
import json
import os
import tempfile
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from tenor import errors
from tenor.environment import usable_cores
from tenor.errors import MissingExtra, TenorError, UsageError, WorkerError
from tenor.progress import SILENT, Progress
from tenor.store.staging import stage_data
from tenor.store.verify import verify_data
from tenor.training.display import Display
from tenor.training.job import Job
from tenor.training.processes import Workers
from tenor.training.resume import finished_result
from tenor.training.roles import has_server, num_computing
from tenor.training.served import ServedWorkers
from tenor.training.settings import TrainSettings
from tenor.world import World, detect


@dataclass(frozen=True)
class TrainResult:
    """What a run came to; `as_dict` is the command's --json."""

    run: Path
    values: dict[str, Any]

    def as_dict(self) -> dict[str, Any]:
        return {**self.values, "run": str(self.run)}


def train(
    data: str | Path, out: str | Path, settings: TrainSettings | None = None, progress: Progress = SILENT
) -> TrainResult:
    """Train a model on prepared `data` and leave it, with all that belongs to it, in the folder `out`.

    Starts `settings.workers` processes on this machine, unless torchrun, mpirun or SLURM started this process: then
    it is one of theirs, and every one of them calls this function with the same arguments.

    >>> tenor.train("data", "run", tenor.TrainSettings(cell="gru", epochs=3))  # doctest: +SKIP
    """
    settings = settings or TrainSettings()
    if settings.tensorboard and importlib.util.find_spec("tensorboard") is None:
        raise MissingExtra("--tensorboard", "tensorboard")
    run = Path(out)
    folder = stage_data(data, settings.stage) if settings.stage else Path(data)
    job = Job(str(folder.resolve()), str(run.resolve()), settings, settings.resume)
    world = detect()
    if world.launcher not in ("none", "tenor"):
        return TrainResult(run, _train_as_one_of(world, job, progress))
    check_source(folder, settings.task)
    claim(run, settings.resume)
    try:
        return TrainResult(run, _supervise(job, num_workers(settings), progress))
    except TenorError:
        with contextlib.suppress(OSError):  # a folder with anything in it stays
            run.rmdir()
        raise


def check_source(data: Path, task: str) -> None:
    """Refuse data that a task cannot be trained on, before any worker starts."""
    if task == "reviews":
        verify_data(data)
    elif data.name != task:
        raise UsageError(
            f"--task {task} reads no data, not {data.name!r} either",
            remedy=f"tenor train {task} --task {task} --out RUN",
        )


def claim(path: Path, resume: bool) -> None:
    """Make the run's folder, or refuse one that holds something already."""
    if path.exists() and not path.is_dir():
        raise UsageError("is a file", where=path, remedy="give --out a folder")
    if path.is_dir() and any(path.iterdir()) and not resume:
        raise UsageError("is not empty", where=path, remedy="give --out another folder, or --resume to go on with it")
    path.mkdir(parents=True, exist_ok=True)


def num_workers(settings: TrainSettings) -> int:
    return usable_cores() if settings.workers == "auto" else int(settings.workers)


def num_threads(settings: TrainSettings, workers: int) -> int:
    return settings.threads or max(1, usable_cores() // workers)


def _supervise(job: Job, size: int, progress: Progress) -> dict[str, Any]:
    """Run the workers to the end; after a loss start them again from the last checkpoint, as often as allowed."""
    limit = job.settings.max_restarts
    for restarts in range(limit + 1):
        if job.resume and (result := finished_result(Path(job.out), Path(job.data), vars(job.settings))) is not None:
            progress.say(f"{job.out} is finished: its result stays as it is")
            return {**result, "restarts": restarts, "replaced": 0}
        display = Display(progress)
        try:
            replaced = _run_once(job, size, display)
            return {**display.result, "restarts": restarts, "replaced": replaced}
        except WorkerError as error:
            if restarts == limit:
                raise
            progress.warn(f"{error.what}; restart {restarts + 1} of {limit}")
            job = replace(job, resume=True)
        finally:
            progress.finish()
    raise AssertionError("the loop returns or raises")


def _run_once(job: Job, size: int, display: Display) -> int:
    """The number of workers that were replaced on the way."""
    with tempfile.TemporaryDirectory(prefix="tenor-") as scratch:
        folder = Path(scratch)
        (folder / "job.json").write_text(job.to_json(), "utf-8")
        with _team(folder, job.settings, size) as workers:
            for line in workers.events():
                display.show(json.loads(line))
            failure = workers.failed
        if failure is not None:
            error = _named(folder, failure.rank) or failure.as_error()
            if isinstance(error, errors.Stopped):  # whether a checkpoint was saved, the first worker knows
                error = _named(folder, 0) or error
            if workers.signal and isinstance(error, WorkerError):  # asked to stop, so nothing starts again
                raise errors.Stopped(workers.signal, f"{error.what}; --resume goes on from the last checkpoint")
            raise error
        if workers.signal:  # it came too late for this run, but not for what was to follow it
            raise errors.Stopped(workers.signal, "the run was finished by then")
        return workers.replaced


def _team(folder: Path, settings: TrainSettings, size: int) -> Workers:
    threads = num_threads(settings, size)
    if has_server(settings, size):
        return ServedWorkers(folder, size, threads, settings.timeout, settings.max_replacements)
    return Workers(folder, size, threads, settings.timeout)


def _named(folder: Path, rank: int) -> TenorError | None:
    """The error a worker wrote down before it left, as what it was."""
    file = folder / f"error-{rank}.json"
    if not file.exists():
        return None
    told = json.loads(file.read_text("utf-8"))
    if told["kind"] == "Stopped":
        return errors.Stopped(told["signal"], told["remedy"])
    kind: type[TenorError] = getattr(errors, told["kind"])
    error = TenorError.__new__(kind)
    TenorError.__init__(error, told["what"], where=told["where"], remedy=told["remedy"])
    return error


def _train_as_one_of(world: World, job: Job, progress: Progress) -> dict[str, Any]:
    """Train as the rank that torchrun, mpirun or SLURM gave this process."""
    import torch

    from tenor.training.rank import train_as
    from tenor.training.worker import listen

    asked, size = job.settings.workers, num_computing(job.settings, world.size)
    if asked not in ("auto", str(size)):
        server = " and a server" if has_server(job.settings, world.size) else ""
        remedy = "leave --workers away: the launcher says how many"
        raise UsageError(f"--workers {asked}, but {world.launcher} started {size}{server}", remedy=remedy)
    restarted = int(os.environ.get("TORCHELASTIC_RESTART_COUNT", "0")) > 0
    job = replace(job, resume=job.resume or restarted)
    if world.local_rank == 0:
        check_source(Path(job.data), job.settings.task)
    if world.is_first:
        claim(Path(job.out), job.resume)
    torch.set_num_threads(num_threads(job.settings, world.local_size))
    if job.resume and (result := finished_result(Path(job.out), Path(job.data), vars(job.settings))) is not None:
        return {**result, "restarts": 0, "replaced": 0}
    display = Display(progress)
    try:
        return {**train_as(world, job, display.show, listen()), "restarts": 0, "replaced": 0}
    finally:
        progress.finish()
