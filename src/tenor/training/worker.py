"""One worker process: builds the parts, runs the loop, tells the launcher in JSON lines.

Started as `python -m tenor.training.worker JOB`, with its rank in the environment. Nothing is pickled; the worker ends
when its standard input closes, so it cannot outlive whoever started it.
"""

from __future__ import annotations

import json
import os
import signal
import sys
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any, TextIO

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from tenor.errors import RunError, TenorError, UsageError
from tenor.progress import Progress
from tenor.store.verify import verify_data
from tenor.training.checkpoint import Checkpoint, newest_checkpoint, save_checkpoint
from tenor.training.display import Display
from tenor.training.group import Group, join
from tenor.training.job import Job
from tenor.training.launch import claim
from tenor.training.loop import Loop
from tenor.training.optimizers import Optimizer, make_rule
from tenor.training.reviews import Reviews
from tenor.training.run_folder import RunFolder
from tenor.training.schedule import Schedule, scaled_rate
from tenor.training.settings import TrainSettings
from tenor.training.strategies import STRATEGIES
from tenor.training.task import Task
from tenor.world import World, detect


class Silence:
    """The recorder of every rank but the first."""

    def log(self, event: dict[str, Any]) -> None:
        pass

    def save(self, make: Callable[[], Checkpoint]) -> None:
        pass

    def save_model(self, weights: dict[str, Tensor]) -> None:
        pass


class Scribe:
    """Rank 0's recorder: events to the run folder and to the launcher."""

    def __init__(self, folder: RunFolder, keep: int, tell: Callable[[dict[str, Any]], None]) -> None:
        self.folder, self.keep, self.tell = folder, keep, tell

    def log(self, event: dict[str, Any]) -> None:
        self.folder.log(event)
        self.tell(event)

    def save(self, make: Callable[[], Checkpoint]) -> None:
        """A disk that is full loses this checkpoint, not the run: the previous one stays."""
        try:
            save_checkpoint(self.folder.checkpoints, make(), self.keep)
        except OSError as error:
            self.tell({"event": "warning", "message": f"checkpoint not saved: {error}; the previous one is kept"})

    def save_model(self, weights: dict[str, Tensor]) -> None:
        self.folder.save_model(weights)


def train_as(world: World, job: Job, tell: Callable[[dict[str, Any]], None], signalled: Callable[[], int]) -> None:
    """Train as one rank of the world; rank 0 writes the run folder and tells its events."""
    settings = job.settings
    torch.set_default_dtype(torch.float64 if settings.precision == "fp64" else torch.float32)
    group = join(world, settings.timeout)
    task = Reviews(Path(job.data), settings)
    folder = RunFolder(Path(job.out))
    try:
        loop = _assemble(task, settings, group, world, Scribe(folder, settings.keep_checkpoints, tell), signalled)
        saved = _resume(folder, group) if job.resume else None
        if saved:
            loop.restore(saved)
        if world.is_first:
            folder.start({**task.describe(), "settings": vars(settings)}, Path(job.data) / "vocab.json")
            folder.rewind(loop.cursor.step)
            tell({"event": "start", **_plan(loop)})
        loop.run()
        _finish(loop, folder, world, tell)
    finally:
        task.close()
    group.close()


def _assemble(
    task: Task, settings: TrainSettings, group: Group, world: World, scribe: Scribe, signalled: Callable[[], int]
) -> Loop:
    model = task.make_model()
    optimizer = Optimizer(model, make_rule(settings.optimizer, settings.momentum, settings.weight_decay))
    name = settings.strategy if settings.strategy != "auto" else ("allreduce" if world.size > 1 else "single")
    if name == "single" and world.size > 1:
        raise UsageError(f"--strategy single with {world.size} workers", remedy="use --workers 1, or another strategy")
    strategy = STRATEGIES[name]()
    strategy.setup(model, optimizer, group)
    recorder = scribe if world.is_first else Silence()
    schedule = make_schedule(settings, task.order.num_batches)
    shares = parse_shares(settings.shares, world.size)
    return Loop(task, settings, group, strategy, model, optimizer, schedule, shares, recorder, signalled)


def make_schedule(settings: TrainSettings, num_batches: int) -> Schedule:
    peak = scaled_rate(settings.lr, settings.batch_size, settings.reference_batch, settings.scaling)
    base = settings.lr if peak > settings.lr else 0.0
    return Schedule(
        base=base,
        peak=peak,
        warmup_steps=round(settings.warmup_epochs * num_batches),
        total_steps=settings.epochs * num_batches,
        decay=settings.decay,
    )


def parse_shares(text: str, size: int) -> NDArray[np.float64]:
    """`5:2:1` as numbers; empty: equal shares."""
    if not text:
        return np.ones(size)
    try:
        shares = np.array([float(part) for part in text.split(":")])
    except ValueError:
        shares = np.empty(0)
    if len(shares) != size or not np.all(np.isfinite(shares)) or np.any(shares < 0) or shares.sum() <= 0:
        raise UsageError(
            f"--shares cannot be {text!r}", remedy=f"give {size} numbers with colons between, such as 5:2:1"
        )
    return shares


def _resume(folder: RunFolder, group: Group) -> Checkpoint | None:
    """The newest valid checkpoint; all ranks must see the same one."""
    saved, refused = newest_checkpoint(folder.checkpoints)
    if saved is None and refused:
        raise RunError(f"no valid checkpoint ({refused[0]})", where=folder.path, remedy="start again without --resume")
    steps = group.gather(torch.tensor([saved.step if saved else -1]))
    if len(set(steps.tolist())) > 1:
        raise RunError("workers see different checkpoints", where=folder.path, remedy="use a folder all workers share")
    return saved


def _plan(loop: Loop) -> dict[str, Any]:
    order, cursor = loop.task.order, loop.cursor
    total = order.num_batches * loop.settings.epochs
    limit = loop.settings.max_steps
    return {
        "step": cursor.step,
        "total_steps": min(total, limit) if limit else total,
        "rows": order.num_rows,
        "workers": loop.group.size,
    }


def _finish(loop: Loop, folder: RunFolder, world: World, tell: Callable[[dict[str, Any]], None]) -> None:
    """Measure the kept weights on the test rows; rank 0 writes the result."""
    result = loop.summary()
    group = loop.group
    group.gather(torch.zeros(1))  # rank 0 has saved the model by now
    kept = folder.load_model()
    for name, weight in loop.optimizer.weights.items():
        weight.copy_(kept[name])
    test = loop.task.measure(loop.model, "test", group)
    result |= {"test": test.as_dict() if test else {}, "workers": world.size}
    if world.is_first:
        loop.recorder.log({"event": "end", **result})
        folder.finish(result)


def train_under_launcher(world: World, job: Job, progress: Progress) -> dict[str, Any]:
    """Train as the rank that torchrun, mpirun or SLURM gave this process; only rank 0 has something to tell."""
    asked = job.settings.workers
    if asked not in ("auto", str(world.size)):
        raise UsageError(
            f"--workers {asked}, but {world.launcher} started {world.size}", remedy="leave --workers to the launcher"
        )
    if world.is_first:
        verify_data(Path(job.data))
        claim(Path(job.out), job.resume)
    received: list[int] = []
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda came, _: received.append(came))
    display = Display(progress, world.size)
    try:
        train_as(world, job, display.show, lambda: received[0] if received else 0)
    finally:
        progress.finish()
    return display.result


def watch_input(stream: TextIO) -> None:
    """End this process when whoever started it is gone."""

    def wait() -> None:
        stream.read()
        os._exit(1)

    threading.Thread(target=wait, name="tenor-watch", daemon=True).start()


def main() -> None:
    received: list[int] = []
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda came, _: received.append(came))
    watch_input(sys.stdin)
    job_file = Path(sys.argv[1])
    job = Job.from_json(job_file.read_text("utf-8"))
    world = detect()
    torch.set_num_threads(int(os.environ["OMP_NUM_THREADS"]))

    def tell(event: dict[str, Any]) -> None:
        print(json.dumps(event), flush=True)

    try:
        train_as(world, job, tell, lambda: received[0] if received else 0)
    except TenorError as error:
        report = {
            "signal": getattr(error, "signal", 0),
            "kind": type(error).__name__,
            "what": error.what,
            "where": error.where,
            "remedy": error.remedy,
        }
        (job_file.parent / f"error-{world.rank}.json").write_text(json.dumps(report))
        sys.stdout.flush()
        os._exit(error.exit_code)  # a group that lost a member cannot be closed in order
    sys.stdout.flush()
    os._exit(0)  # gloo's threads may still wait for peers that left a moment earlier


if __name__ == "__main__":
    main()
