"""`tenor.train`: start the workers, show their progress, name the worker that fails, restart from a checkpoint."""

from __future__ import annotations

import contextlib
import importlib.util
import json
import os
import shutil
import tempfile
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Unpack

from tenor.environment import num_threads, num_workers, refuse_crowd, usable_cores
from tenor.errors import MissingExtra, Stopped, TenorError, UsageError, WorkerError
from tenor.progress import Progress, Shown, shown
from tenor.settings import changed, chosen
from tenor.store.lock import NAME as LOCK
from tenor.store.lock import locked
from tenor.store.manifest import Manifest
from tenor.store.staging import stage_data
from tenor.store.verify import verify_data
from tenor.training.job import TrainingJob
from tenor.training.launching.display import Display
from tenor.training.launching.hosts import NetworkHost
from tenor.training.launching.parameter_server_processes import ParameterServerProcesses
from tenor.training.launching.word_vectors import learn_vectors
from tenor.training.launching.worker_processes import WorkerProcesses
from tenor.training.recipe import DataFacts, complete
from tenor.training.refusals import refuse_without_effect
from tenor.training.runs.ancestry import Ancestry, check_descent, descend
from tenor.training.runs.resume import STOP_RULES, finished_result, inherit
from tenor.training.settings import TrainSettings
from tenor.training.tasks.rehearsal import folder_of
from tenor.training.traits import TASKS, has_server, num_computing
from tenor.world import World, detect

if TYPE_CHECKING:
    from tenor.options import TrainOptions

RELEASE_SECONDS = 5.0  # for the last workers of a killed run to release the folder


@dataclass(frozen=True)
class TrainResult:
    """The result of `tenor.train`.

    Attributes:
        run: The run folder.
        values: The final figures, such as steps, seconds, samples_per_s, valid, test and weights_sha256.
    """

    run: Path
    values: dict[str, Any]

    def as_dict(self) -> dict[str, Any]:
        """Return all figures and the run folder as JSON values, as `tenor train --json` prints them.

        >>> tenor.train("data", "run").as_dict()["steps"]  # doctest: +SKIP
        471
        """
        return {**self.values, "run": str(self.run)}


@dataclass(frozen=True)
class Start:
    """How the launcher starts the workers of a run."""

    size: int  # of the run, in computing workers
    lock: int  # the file handle of the lock on the run folder
    hosts: tuple[NetworkHost, ...] = ()


def train(
    data: str | Path,
    out: str | Path,
    settings: TrainSettings | None = None,
    progress: Shown = None,
    given: Collection[str] | None = None,
    hosts: Sequence[NetworkHost] = (),
    **options: Unpack[TrainOptions],
) -> TrainResult:
    """Train a model on prepared data and write it to a run folder.

    The function starts `settings.workers` processes on this machine. Under torchrun, mpirun or SLURM it starts none:
    every process of the launcher calls this function with the same arguments and is one of the workers.

    Args:
        data: A folder made by `tenor.prepare`; "points" for the task `points`; a text file, a
            folder, or "words" for a generated text for the task `words`.
        out: The run folder to create. It must be new or empty, unless the run is resumed.
        settings: How to train; the defaults if omitted. A resumed run (`resume=True`) takes the settings that are not
            given from its own config.json.
        progress: True shows progress, False none; by default it is shown in notebooks only.
        given: The names of the settings that the caller chose, for a resumed run. Default: those that differ from their
            default values, and the keywords.
        hosts: A host for each process, for experiments with networks; by default all share this one.
        options: Each setting may also be given as a keyword, which overrides `settings`.

    Returns:
        The run folder and its final figures: steps, seconds, samples_per_s, valid, test, weights_sha256 and more.

    Raises:
        UsageError: A setting is wrong, or `out` is not empty or in use.
        StoreError: The data is missing, damaged or of another format.
        RunError: A run cannot be resumed, or its folder cannot be written.
        WorkerError: A worker died or stopped answering, and `max_restarts` is used up.
        TrainingError: Training cannot continue, for example because the loss is not finite.
        Stopped: A signal stopped the run after saving a checkpoint.

    Example:
        >>> result = tenor.train("data", "run", cell="gru", epochs=3)  # doctest: +SKIP
        >>> result.values["test"]["accuracy"]  # doctest: +SKIP
        0.8716
    """
    settings, progress = chosen(TrainSettings, settings, options), shown(progress)
    typed = options.keys() if given is None else given
    if given is None:
        given = changed(settings) | options.keys()
    if settings.tensorboard and importlib.util.find_spec("tensorboard") is None:
        raise MissingExtra("--tensorboard", "tensorboard")
    run, world = Path(out), detect()
    is_launched = world.launcher not in ("none", "tenor")
    if settings.from_run:
        settings = replace(settings, from_run=str(Path(settings.from_run).resolve()))
    if is_resumed := settings.resume or (is_launched and is_restarted()):
        settings = inherit(run, settings, given, is_launched)
    is_continued = is_resumed and (run / "config.json").exists()
    folder = stage_data(data, settings.stage) if settings.stage else Path(data)
    if world.local_rank == 0:
        check_source(folder, settings.task)
    if settings.from_run and not is_continued:
        settings = _start_from(Path(settings.from_run), folder, settings, given, progress)
    if settings.all_rows:
        _check_all_rows(folder, settings.task, is_launched)
    facts = DataFacts.of(Manifest.load(folder), settings.all_rows) if TASKS[settings.task].reads_text else None
    cores = world.size if is_launched else usable_cores()
    job = TrainingJob(str(folder.resolve()), str(run.resolve()), complete(settings, facts, cores), is_resumed)
    size = world.size if is_launched else num_workers(settings.workers)
    refuse_crowd("--threads", settings.threads)
    if not is_continued:  # its options were checked when it began
        refuse_without_effect(settings, job.settings, typed)
    if is_launched:
        return TrainResult(run, _train_as_rank(world, job, progress))
    with claim_folder(run, is_resumed) as lock:
        rehearsed = _rehearse(folder, run, job.settings, progress) if settings.all_rows else {}
        learned = learn_vectors(job, progress)
        start = Start(size, lock, tuple(hosts))
        try:
            return TrainResult(run, {**_supervise(job, start, progress), **rehearsed})
        except UsageError:  # the workers refuse the settings, so nothing may be left
            if learned is not None:
                shutil.rmtree(learned, ignore_errors=True)
            raise


def _start_from(
    ancestor: Path, data: Path, settings: TrainSettings, given: Collection[str] | None, progress: Progress
) -> TrainSettings:
    """The settings of a run that starts from another one, once the data is known to fit that run."""
    ancestry = Ancestry.of(ancestor)
    settings = descend(ancestry, settings, given)
    check_descent(ancestry, data, progress)
    return settings


def _check_all_rows(data: Path, task: str, is_launched: bool) -> None:
    """Raise UsageError if a run cannot be rehearsed."""
    if is_launched or not TASKS[task].reads_text:
        where = "under a launcher" if is_launched else f"with --task {task}"
        raise UsageError(f"--all-rows does not work {where}", remedy="omit it, or let tenor start the workers")
    if not Manifest.load(data).splits["valid"].rows:
        remedy = "omit --all-rows, or prepare the data with --valid-share 0.05"
        raise UsageError("has no validation rows to fit the model on", where=data, remedy=remedy)


def _rehearse(data: Path, run: Path, settings: TrainSettings, progress: Progress) -> dict[str, Any]:
    """Train on the training rows alone, unless this is already done; return what was measured.

    Args:
        data: The prepared data.
        run: The folder of the run on all rows.
        settings: Of that run. Nothing is left to choose, so both runs train the same model.
        progress: Where to say what is going on.
    """
    folder = folder_of(run)
    progress.say("first a rehearsal on the training rows alone")
    half = settings.max_seconds / 2  # of the time; the run on all rows has what is left
    settings = replace(settings, all_rows=False, resume=folder.exists(), max_seconds=half)
    is_finished = (folder / "result.json").exists()  # another time limit for the rest does not matter to it
    given = changed(settings) - STOP_RULES if is_finished else None
    result = train(data, folder, settings, progress, given)
    progress.say("now the model on all rows")
    return {"rehearsal": {name: result.values[name] for name in ("valid", "test", "seconds", "weights_sha256")}}


def is_restarted() -> bool:
    """Whether torchrun started this process in place of a lost one."""
    return int(os.environ.get("TORCHELASTIC_RESTART_COUNT", "0")) > 0


def check_source(data: Path, task: str) -> None:
    """Raise an error for data that the task cannot use, before any worker starts."""
    traits = TASKS[task]
    if traits.reads_text or (traits.reads_words and data.is_dir()):
        verify_data(data)
    elif traits.reads_words and not data.exists() and data.name != task:
        remedy = f"give a text file or prepared data, or {task} for a generated text"
        raise UsageError("does not exist", where=data, remedy=remedy)
    elif data.name != task and not traits.reads_words:
        what = f"--task {task} takes no data folder (got {data.name!r})"
        raise UsageError(what, remedy=f"run `tenor train {task} --task {task} --out RUN`")


@contextlib.contextmanager
def claim_folder(path: Path, resume: bool) -> Iterator[int]:
    """Create and lock the run folder, unless it is in use. Gives the file handle of the lock."""
    refuse_used(path, resume)  # before anything is written
    try:
        with locked(path, RELEASE_SECONDS if resume else 0.0) as lock:
            refuse_used(path, resume)  # another run may have ended in the meantime
            yield lock
    except TenorError:
        with contextlib.suppress(OSError):  # keeps a folder that is not empty
            path.rmdir()
        raise


def refuse_used(path: Path, resume: bool) -> None:
    """Raise UsageError if `path` is not a folder, or has files in it and the run is not resumed."""
    if path.exists() and not path.is_dir():
        raise UsageError("is a file, not a folder", where=path, remedy="give --out a new or empty folder")
    if path.is_dir() and not resume and any(file.name != LOCK for file in path.iterdir()):
        remedy = "give --out a new or empty folder, or continue the run in it with --resume"
        raise UsageError("is not empty", where=path, remedy=remedy)


def _supervise(job: TrainingJob, start: Start, progress: Progress) -> dict[str, Any]:
    """Run the workers to the end. After a loss, start them again from the last checkpoint as often as allowed."""
    limit = job.settings.max_restarts
    for restarts in range(limit + 1):
        if job.resume and (result := finished_result(Path(job.out), Path(job.data), vars(job.settings))) is not None:
            progress.say(f"the run in {job.out} is already finished; nothing to do")
            return {**result, "restarts": restarts, "replaced": 0}
        display = Display(progress)
        try:
            replaced = _run_once(job, start, display)
            return {**display.result, "restarts": restarts, "replaced": replaced}
        except WorkerError as error:
            if restarts == limit:
                raise
            progress.warn(f"{error.what}; restart {restarts + 1} of {limit}")
            job = replace(job, resume=True)
        finally:
            progress.finish()
    raise AssertionError("the loop returns or raises")


def _run_once(job: TrainingJob, start: Start, display: Display) -> int:
    """Run the workers once. Returns the number of workers that were replaced."""
    with tempfile.TemporaryDirectory(prefix="tenor-") as scratch:
        folder = Path(scratch)
        (folder / "job.json").write_text(job.to_json(), "utf-8")
        with _make_processes(folder, job.settings, start) as workers:
            for line in workers.events():
                display.show(json.loads(line))
        if workers.failure is not None:
            raise _error_of(workers)
        if workers.signal:  # too late for this run, but not for what the caller wants to do next
            raise Stopped(workers.signal, "the run had already finished")
        return workers.num_replaced


def _error_of(workers: WorkerProcesses) -> TenorError:
    """The error of the worker that failed first."""
    assert workers.failure is not None
    error = workers.error_of(workers.failure.rank) or workers.failure.as_error()
    if isinstance(error, Stopped):  # only the first worker knows whether a checkpoint was saved
        error = workers.error_of(0) or error
    if workers.signal and isinstance(error, WorkerError):  # we were asked to stop, so there is no restart
        return Stopped(workers.signal, f"{error.what}; --resume continues from the last checkpoint")
    return error


def _make_processes(folder: Path, settings: TrainSettings, start: Start) -> WorkerProcesses:
    size, lock = start.size, start.lock
    threads = num_threads(settings.threads, size)
    if has_server(settings.strategy, size):
        most = settings.max_replacements
        workers: WorkerProcesses = ParameterServerProcesses(folder, size, threads, settings.timeout, lock, most)
    else:
        workers = WorkerProcesses(folder, size, threads, settings.timeout, lock)
    workers.hosts = start.hosts
    return workers


def _train_as_rank(world: World, job: TrainingJob, progress: Progress) -> dict[str, Any]:
    """Train in this process, as the rank that torchrun, mpirun or SLURM gave it."""
    import torch

    from tenor.training.assemble import train_as
    from tenor.training.launching.worker import listen

    asked, size = job.settings.workers, num_computing(job.settings.strategy, world.size)
    if asked not in ("auto", size):
        server = " and a parameter server" if has_server(job.settings.strategy, world.size) else ""
        remedy = "omit --workers: the launcher decides how many there are"
        raise UsageError(f"--workers {asked}, but {world.launcher} started {size}{server}", remedy=remedy)
    torch.set_num_threads(num_threads(job.settings.threads, world.local_size))
    display = Display(progress)
    with claim_folder(Path(job.out), job.resume) if world.is_first else contextlib.nullcontext():
        if job.resume and (result := finished_result(Path(job.out), Path(job.data), vars(job.settings))) is not None:
            return {**result, "restarts": 0, "replaced": 0}
        if world.is_first:  # the others wait until they can join
            learn_vectors(job, progress)
        try:
            return {**train_as(world, job, display.show, listen()), "restarts": 0, "replaced": 0}
        finally:
            progress.finish()
