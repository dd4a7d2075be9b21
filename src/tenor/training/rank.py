"""Training as one rank of a world: put the parts together, run the loop, write the result."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from tenor.environment import usable_cores
from tenor.errors import RunError, UsageError
from tenor.memory import keep_freed_memory
from tenor.training.balance import Balance, parse_caps
from tenor.training.checkpoint import Checkpoint, newest_checkpoint
from tenor.training.grid import make_grid
from tenor.training.groups import Alone, Group, choose_backend, choose_device, join
from tenor.training.job import Job
from tenor.training.loop import Loop
from tenor.training.optimizers import Optimizer, make_rule
from tenor.training.parameter_server.serving import serving
from tenor.training.parameter_server.worker import work
from tenor.training.precision import check_precision, set_precision
from tenor.training.recorder import Recorder, Scribe, Silence, Tell
from tenor.training.resume import check_same
from tenor.training.roles import has_server, num_computing
from tenor.training.run_folder import RunFolder
from tenor.training.schedule import Schedule, scaled_rate
from tenor.training.settings import TrainSettings
from tenor.training.slowdown import Pace, clock_of, parse_slowdown
from tenor.training.strategies import BALANCED, Asynchronous, ModelParallel, make_strategy, strategy_name
from tenor.training.task import Task
from tenor.training.tasks import make_task
from tenor.training.tensorboard import Board
from tenor.training.warmup import warm_up
from tenor.world import World


def train_as(world: World, job: Job, tell: Tell, signalled: Callable[[], int]) -> dict[str, Any]:
    """Train as one rank; rank 0 writes the run folder and tells its events. Every rank gets the result."""
    settings = job.settings
    keep_freed_memory()
    torch.set_default_dtype(torch.float64 if settings.precision == "fp64" else torch.float32)
    device = choose_device(settings.device, world)
    if settings.task == "reviews":
        check_precision(settings.precision, settings.cell, device)
    backend = choose_backend(settings.backend, world, device)
    is_served = has_server(settings, world.size)
    if is_served and not world.is_first:
        return work(world, job, device, backend, signalled)
    group = Alone() if is_served else join(world, backend, settings.timeout)
    task = make_task(Path(job.data), settings)
    folder = RunFolder(Path(job.out))
    keep = settings.keep_checkpoints
    recorder: Recorder = Scribe(folder, keep, tell) if world.is_first else Silence(folder, keep)
    if settings.tensorboard and world.is_first:
        recorder = Board(recorder, folder.path)
    try:
        loop = _assemble(task, settings, world, group, device, recorder, signalled)
        with serving(loop) as tell_workers:
            config = {**task.describe(), "settings": vars(settings)}
            refused: list[str] = []
            if job.resume:
                check_same(folder.path, config)
                saved, refused = _find_checkpoint(folder, group)
                if saved is not None:
                    _refuse_scattered(saved, loop, folder)
                    loop.restore(saved)
            if world.is_first:
                folder.start(config, task.vocabulary)
                folder.rewind(loop.cursor.step)
                for reason in refused:
                    tell({"event": "warning", "message": f"checkpoint passed over: {reason}"})
                tell({"event": "start", **_plan(loop, world)})
            warm_up(loop, world.local_size)
            loop.run()
            result = _finish(loop, folder, world)
            tell_workers(result)
    finally:
        task.close()
    group.close()
    return result


def _assemble(
    task: Task,
    settings: TrainSettings,
    world: World,
    group: Group,
    device: torch.device,
    recorder: Recorder,
    signalled: Callable[[], int],
) -> Loop:
    model = task.make_model().to(device)
    set_precision(model, settings.precision, device)
    optimizer = Optimizer(model, make_rule(settings.optimizer, settings.momentum, settings.weight_decay))
    strategy = make_strategy(settings, world)
    strategy.setup(model, optimizer, group)
    grid = strategy.grid if isinstance(strategy, ModelParallel) else make_grid(group, 1)
    schedule = make_schedule(settings, task.order.num_batches)
    size = grid.column.size
    shares, caps = parse_shares(settings.shares, size), parse_caps(settings.token_caps, size)
    balance = Balance(settings.balance, task.order, shares, caps)
    slowdown = parse_slowdown(settings.slowdown, num_computing(settings, world.size))
    pace = Pace(slowdown, world.rank, shares_cores=world.local_size > usable_cores(), clock=clock_of(device.type))
    parts = (schedule, balance, pace, recorder, signalled, device)
    return Loop(task, settings, group, grid, strategy, model, optimizer, *parts)


def make_schedule(settings: TrainSettings, num_batches: int) -> Schedule:
    """Warm-up rises from the reference batch's rate where the batch scales it up, from nothing otherwise."""
    peak = scaled_rate(settings.lr, settings.batch_size, settings.reference_batch, settings.scaling)
    return Schedule(
        base=settings.lr if peak > settings.lr else 0.0,
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
        remedy = f"give {size} numbers with colons between, such as {':'.join('521'[i % 3] for i in range(size))}"
        raise UsageError(f"--shares cannot be {text!r}", remedy=remedy)
    return shares


def _find_checkpoint(folder: RunFolder, group: Group) -> tuple[Checkpoint | None, list[str]]:
    """The newest valid checkpoint, or None for a run that was stopped before its first, and why newer ones were passed
    over; all ranks see the same."""
    saved, refused = newest_checkpoint(folder.checkpoints)
    if saved is None and refused:
        raise RunError(f"no valid checkpoint ({refused[0]})", where=folder.path, remedy="train again in another folder")
    steps = group.gather(torch.tensor([saved.step if saved else -1]))
    if len(set(steps.tolist())) > 1:
        raise RunError("workers see different checkpoints", where=folder.path, remedy="use a folder all workers share")
    return saved, refused


def _refuse_scattered(saved: Checkpoint, loop: Loop, folder: RunFolder) -> None:
    """Asynchronous workers finish batches out of order; who takes them in order would miss some and repeat others."""
    done = saved.tensors.get("strategy/done", torch.empty(0)).tolist()
    if saved.values["batch"] and done != list(range(len(done))) and not isinstance(loop.strategy, Asynchronous):
        remedy = "resume with --strategy async and at least 2 workers until the epoch ends"
        raise RunError("was stopped by asynchronous workers within an epoch", where=folder.path, remedy=remedy)


def _plan(loop: Loop, world: World) -> dict[str, Any]:
    total = loop.task.order.num_batches * loop.settings.epochs
    limit = loop.settings.max_steps
    return {
        "step": loop.cursor.step,
        "total_steps": min(total, limit) if limit else total,
        "rows": loop.task.order.num_rows,
        "workers": num_computing(loop.settings, world.size),
        "alike": loop.grid.row.size == 1,
        "balance": loop.settings.balance,
        "can_balance": strategy_name(loop.settings, loop.group.size) in BALANCED,
    }


def _finish(loop: Loop, folder: RunFolder, world: World) -> dict[str, Any]:
    """Measure the kept weights on the test rows; rank 0 writes the result."""
    result = loop.summary()
    loop.group.gather(torch.zeros(1))  # by now rank 0 has saved the model
    kept = folder.load_model()
    for name, weight in loop.optimizer.weights.items():
        weight.copy_(kept[name])
    test = loop.task.measure(loop.model, "test", loop.group) if loop.settings.test else None
    result |= {"test": test.as_dict() if test else {}, "workers": num_computing(loop.settings, world.size)}
    result |= loop.task.known
    loop.recorder.log({"event": "end", "step": loop.cursor.step, **result})
    if world.is_first:
        folder.finish(result)
    return result
