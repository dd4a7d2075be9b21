"""`tenor.train`: starts the workers, shows how far they are, names the one that fails, restarts from a checkpoint."""

from __future__ import annotations

import json
import tempfile
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from tenor import errors
from tenor.environment import usable_cores
from tenor.errors import TenorError, UsageError, WorkerError
from tenor.progress import SILENT, Progress
from tenor.store.verify import verify_data
from tenor.training.display import Display
from tenor.training.job import Job
from tenor.training.processes import Workers
from tenor.training.settings import TrainSettings
from tenor.world import detect


@dataclass(frozen=True)
class TrainResult:
    """What a run came to; `as_dict` is the command's --json."""

    run: Path
    values: dict[str, Any]

    def as_dict(self) -> dict[str, Any]:
        return {**self.values, "run": str(self.run)}


def train(
    data: str | Path,
    out: str | Path,
    settings: TrainSettings | None = None,
    progress: Progress = SILENT,
) -> TrainResult:
    """Train a model on prepared `data` and leave it, with all that belongs to it, in the folder `out`.

    >>> tenor.train("data", "run", tenor.TrainSettings(cell="gru", epochs=3))  # doctest: +SKIP
    """
    settings = settings or TrainSettings()
    run, folder = Path(out), Path(data)
    job = Job(str(folder.resolve()), str(run.resolve()), settings, settings.resume)
    world = detect()
    if world.launcher not in ("none", "tenor"):
        from tenor.training.worker import train_under_launcher

        return TrainResult(run, train_under_launcher(world, job, progress))
    verify_data(folder)
    claim(run, settings.resume)
    return TrainResult(run, _supervise(job, num_workers(settings), progress))


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
    for restarts in range(job.settings.max_restarts + 1):
        display = Display(progress, size)
        try:
            _run_once(job, size, display)
        except WorkerError as error:
            if restarts == job.settings.max_restarts:
                raise
            progress.say(f"{error.what}; restart {restarts + 1} of {job.settings.max_restarts}")
            job = replace(job, resume=True)
            continue
        finally:
            progress.finish()
        return {**display.result, "restarts": restarts}
    raise AssertionError("the loop returns or raises")


def _run_once(job: Job, size: int, display: Display) -> None:
    with tempfile.TemporaryDirectory(prefix="tenor-") as scratch:
        folder = Path(scratch)
        (folder / "job.json").write_text(job.to_json(), "utf-8")
        with Workers(folder, size, num_threads(job.settings, size)) as workers:
            for line in workers.events():
                display.show(json.loads(line))
            failure = workers.failure()
        if failure is not None:
            raise _named(folder, failure.rank) or failure.as_error()


def _named(folder: Path, rank: int) -> TenorError | None:
    """The error a worker wrote down before it left, raised again here as what it was."""
    file = folder / f"error-{rank}.json"
    if not file.exists():
        return None
    told = json.loads(file.read_text("utf-8"))
    if told["kind"] == "Stopped":
        return errors.Stopped(int(told["signal"]), told["remedy"])
    kind: type[TenorError] = getattr(errors, told["kind"])
    return kind(told["what"], where=told["where"], remedy=told["remedy"])
