"""Training as one rank of a world: put the parts together, run the loop, write the result."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from tenor.environment import usable_cores
from tenor.errors import RunError, UsageError
from tenor.evaluation.metrics import Metrics, measure
from tenor.evaluation.scores import Scores
from tenor.groups import Alone, Group, choose_backend, choose_device, join
from tenor.memory import keep_freed_memory
from tenor.store.reference import write_reference
from tenor.training.balancing.memory_warmup import enlarge, warm_up
from tenor.training.balancing.mode import OFF
from tenor.training.balancing.shares import SharePlan, parse_caps
from tenor.training.balancing.slowdown import Pace, clock_of, parse_slowdown
from tenor.training.batch import TrainBatch
from tenor.training.gradients import backpropagate
from tenor.training.job import TrainingJob
from tenor.training.loop import Loop
from tenor.training.optim.optimizers import Optimizer, make_rule
from tenor.training.optim.precision import set_precision
from tenor.training.optim.schedule import Schedule, scaled_rate
from tenor.training.profiling.collect import brief, gather_spans, make_profiler, write_profile
from tenor.training.runs.checkpoint import Checkpoint, largest_part, newest_checkpoint
from tenor.training.runs.config import FORMAT, stored_settings
from tenor.training.runs.folder import RunFolder
from tenor.training.runs.recorder import EventHandler, FirstRankRecorder, OtherRankRecorder, Recorder
from tenor.training.runs.resume import check_same
from tenor.training.runs.row_scores import write_row_scores
from tenor.training.runs.tensorboard import TensorBoardRecorder
from tenor.training.settings import TrainSettings
from tenor.training.strategies import Strategy, make_strategy
from tenor.training.tasks import make_task
from tenor.training.tasks.base import Task
from tenor.training.traits import STRATEGIES, has_server, num_computing, strategy_name
from tenor.world import World


@dataclass(frozen=True)
class Process:
    """This process among the others of its run."""

    world: World
    group: Group
    device: torch.device
    signalled: Callable[[], int]  # the number of a signal that this process received, or 0


def train_as(world: World, job: TrainingJob, report: EventHandler, signalled: Callable[[], int]) -> dict[str, Any]:
    """Train as one rank of the world; rank 0 writes the run folder and reports events.

    Args:
        world: The rank of this process, and how many processes there are.
        job: What to train on, where to write, and the settings.
        report: Called with each event, on rank 0 only.
        signalled: Returns the number of a signal that this process received, or 0.

    Returns:
        The result of the run, on every rank.
    """
    settings = job.settings
    keep_freed_memory()
    torch.set_default_dtype(torch.float64 if settings.precision == "fp64" else torch.float32)
    device = choose_device(settings.device, world)
    backend = choose_backend(settings.backend, world, device)
    task = make_task(Path(job.data), settings, Path(job.out))
    try:
        task.check_device(device)
        strategy = make_strategy(settings, world)
        strategy.profile = make_profiler(settings.profile, device)
        is_served = has_server(settings.strategy, world.size)  # then messages go through the server's channel
        group = Alone() if is_served else join(world, backend, settings.timeout)
        process = Process(world, group, device, signalled)
        if strategy.is_client:
            model = _make_model(task, settings, device)
            return strategy.run_client(task, model, _make_pace(settings, process), signalled)
        folder = RunFolder(Path(job.out))
        recorder = _make_recorder(folder, settings, world, report)
        loop = make_loop(task, settings, strategy, process, recorder)
        result = _run(loop, folder, world, report, job.resume)
    finally:
        task.close()
    group.close()
    return result


def _run(loop: Loop, folder: RunFolder, world: World, report: EventHandler, resume: bool) -> dict[str, Any]:
    """Run the loop from the beginning or from a checkpoint; the strategy learns how the run ended."""
    try:
        config = {"format": FORMAT, **loop.task.describe(), "settings": stored_settings(loop.settings)}
        refused = _resume(loop, folder, config) if resume else []
        if world.is_first:
            about = {"device": loop.device.type, "sizes": {**loop.sizes(), **_places(world)}}
            folder.start(config, loop.task.vocabulary, about)
            folder.rewind(loop.cursor.step)
            for reason in refused:
                report({"event": "warning", "message": f"skipped a checkpoint: {reason}"})
            for message in loop.task.notes:
                report({"event": "note", "message": message})
            report({"event": "start", **_plan(loop, world)})
        _warm_up(loop, world.local_size)
        loop.run()
        result = _finish(loop, folder, world)
    except BaseException as error:
        loop.strategy.end(error=error)
        raise
    loop.strategy.end(result=result)
    return result


def _places(world: World) -> dict[str, int]:
    """How the workers are spread over hosts; a process with an address of its own has its own host."""
    return {"processes": world.size, "processes_per_host": 1 if world.address else world.fullest_host}


def make_loop(task: Task, settings: TrainSettings, strategy: Strategy, process: Process, recorder: Recorder) -> Loop:
    """Put the parts of a run together."""
    model = _make_model(task, settings, process.device)
    rule = make_rule(settings.optimizer, settings.momentum, settings.weight_decay)
    optimizer = Optimizer(model, rule, task.part_rules(peak_rate(settings)))
    strategy.setup(model, optimizer, process.group)
    num_shares = strategy.grid.column.size
    shares, caps = parse_shares(settings.shares, num_shares), parse_caps(str(settings.token_caps), num_shares)
    return Loop(
        task=task,
        settings=settings,
        group=process.group,
        strategy=strategy,
        model=model,
        optimizer=optimizer,
        schedule=make_schedule(settings, task.order.num_batches),
        balance=SharePlan(settings.balance, task.order, shares, caps),
        pace=_make_pace(settings, process),
        recorder=recorder,
        signalled=lambda: process.signalled() or strategy.signal,
        device=process.device,
        feed=strategy.feed,
    )


def _make_model(task: Task, settings: TrainSettings, device: torch.device) -> torch.nn.Module:
    model = task.make_model()
    set_precision(model, settings.precision)
    return model.to(device)


def _make_pace(settings: TrainSettings, process: Process) -> Pace:
    """The emulated slowness of this process. Computing workers are numbered from 0; a server comes before them."""
    world = process.world
    slowdown = parse_slowdown(settings.slowdown, num_computing(settings.strategy, world.size))
    number = world.rank - has_server(settings.strategy, world.size)
    is_crowded = world.local_size > usable_cores()
    return Pace(slowdown, number, shares_cores=is_crowded, clock=clock_of(process.device.type))


def _make_recorder(folder: RunFolder, settings: TrainSettings, world: World, report: EventHandler) -> Recorder:
    if not world.is_first:
        return OtherRankRecorder(folder, settings.keep_checkpoints)
    recorder = FirstRankRecorder(folder, settings.keep_checkpoints, report)
    return TensorBoardRecorder(recorder, folder.path) if settings.tensorboard else recorder


def _warm_up(loop: Loop, local_size: int) -> None:
    """Reserve memory where shares may change: for whole models on processors, with several workers."""
    is_changing = loop.balance.every != OFF and loop.group.size > 1 and loop.grid.row.size == 1
    if not is_changing or loop.device.type != "cpu":
        return
    column, order = loop.grid.column, loop.task.order
    epoch, k = loop.cursor.epoch, loop.cursor.batch
    whole = loop.task.load(epoch, k, slice(0, len(order.batch(epoch, k))))
    cap = float(loop.balance.balancer.caps[column.rank])
    warm_up(enlarge(whole, column.size, int(order.lengths.max()), cap), partial(_try_out, loop), local_size)


def _try_out(loop: Loop, batch: TrainBatch) -> None:
    """Compute a batch and discard the gradients."""
    loop.model.train()
    backpropagate(loop.model, loop.optimizer, batch, loop.task.objective)
    loop.optimizer.zero_gradients()
    for table in loop.optimizer.tables.values():
        table.release()


def make_schedule(settings: TrainSettings, num_batches: int) -> Schedule:
    """Warm-up rises from the reference batch's rate where the batch scales it up, from nothing otherwise."""
    peak = peak_rate(settings)
    return Schedule(
        base=settings.lr if peak > settings.lr else 0.0,
        peak=peak,
        warmup_steps=round(settings.warmup_epochs * num_batches),
        total_steps=settings.epochs * num_batches,
        decay=settings.decay,
    )


def peak_rate(settings: TrainSettings) -> float:
    """The learning rate after the warm-up."""
    return scaled_rate(settings.lr, settings.batch_size, settings.reference_batch, settings.scaling)


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


def _resume(loop: Loop, folder: RunFolder, config: Mapping[str, Any]) -> list[str]:
    """Continue from the newest valid checkpoint if there is one; return why newer ones were skipped."""
    check_same(folder.path, config)
    saved, refused = _find_checkpoint(folder, loop)
    if saved is not None:
        _refuse_scattered(saved, loop, folder)
        _restore(loop, saved, folder)
    return refused


def _find_checkpoint(folder: RunFolder, loop: Loop) -> tuple[Checkpoint | None, list[str]]:
    """The newest valid checkpoint, and why newer ones were skipped; the same on all ranks.

    A run that was stopped before its first checkpoint has none.
    """
    size = sum(weight.nbytes for weight in loop.model.parameters())
    saved, refused = newest_checkpoint(folder.checkpoints, largest_part(size))
    if saved is None and refused:
        raise RunError(f"no valid checkpoint ({refused[0]})", where=folder.path, remedy="train again in another folder")
    steps = loop.group.gather(torch.tensor([saved.step if saved else -1]))
    if len(set(steps.tolist())) > 1:
        raise RunError("workers see different checkpoints", where=folder.path, remedy="use a folder all workers share")
    return saved, refused


def _restore(loop: Loop, saved: Checkpoint, folder: RunFolder) -> None:
    try:
        loop.restore(saved)
    except ValueError as error:
        what = f"its checkpoint of step {saved.step} cannot be used: {error}"
        raise RunError(what, where=folder.path, remedy="train again in another folder") from error


def _refuse_scattered(saved: Checkpoint, loop: Loop, folder: RunFolder) -> None:
    """Asynchronous workers finish batches out of order; a strategy that takes them in order would repeat some."""
    done = saved.tensors.get("strategy/done", torch.empty(0)).tolist()
    if saved.values.get("batch") and done != list(range(len(done))) and not loop.strategy.resumes_scattered:
        able = " or ".join(name for name, traits in STRATEGIES.items() if traits.has_server)
        remedy = f"resume with --strategy {able} and at least 2 workers until the epoch ends"
        raise RunError("was stopped by asynchronous workers within an epoch", where=folder.path, remedy=remedy)


def _plan(loop: Loop, world: World) -> dict[str, Any]:
    settings, total = loop.settings, loop.task.order.num_batches * loop.settings.epochs
    return {
        "step": loop.cursor.step,
        "total_steps": min(total, settings.max_steps) if settings.max_steps else total,
        "rows": loop.task.order.num_rows,
        "workers": num_computing(settings.strategy, world.size),
        "threads": torch.get_num_threads(),
        "alike": loop.grid.row.size == 1,
        "balance": settings.balance,
        "can_balance": STRATEGIES[strategy_name(settings.strategy, loop.group.size)].is_balanced,
    }


def _finish(loop: Loop, folder: RunFolder, world: World) -> dict[str, Any]:
    """Measure the kept weights on the test rows; rank 0 writes the result."""
    result = loop.summary()
    if loop.settings.profile:
        tracks = gather_spans(loop.strategy.profile, loop.group)
        result["profile"] = brief(tracks)
        if world.is_first:
            write_profile(folder.path, tracks)
    loop.group.gather(torch.zeros(1))  # waits until rank 0 has saved the model
    kept = folder.load_model(loop.saved_weights())
    for name, weight in loop.saved_weights().items():
        weight.copy_(kept[name])
    scores = loop.task.score(loop.model, "test", loop.group) if loop.settings.test else None
    test = _measure_test(loop, scores) if loop.settings.test else None
    workers = num_computing(loop.settings.strategy, world.size)
    result |= {"test": test.as_dict() if test else {}, "workers": workers, **loop.task.known}
    loop.recorder.log({"event": "end", "step": loop.cursor.step, **result})
    if world.is_first:
        if scores is not None:
            write_row_scores(folder.path, scores)
        if (reference := loop.task.reference()) is not None:
            write_reference(folder.path, reference)
        folder.finish(result, loop.task.card())
    return result


def _measure_test(loop: Loop, scores: Scores | None) -> Metrics | None:
    if scores is None:
        return loop.task.measure(loop.model, "test", loop.group)
    return measure(scores, loop.task.describe()["classes"])
