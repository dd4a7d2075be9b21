"""The loop around a strategy, with threads as ranks: skipped steps, counts, checkpoints and resumed runs."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from helpers.strategies import POINTS
from helpers.together import Seat, make_loop, together, train_together
from helpers.training import load_part, load_whole
from torch.nn import functional as F  # noqa: N812

from tenor.errors import TrainingError
from tenor.groups import Alone
from tenor.training.loop import Loop
from tenor.training.settings import TrainSettings
from tenor.training.strategies.base import SyncStats
from tenor.training.tasks.points import Points

BASE = replace(POINTS, hidden=16, epochs=2, batch_size=3000, precision="fp64")  # 10 steps per epoch
WEIGHTED = replace(BASE, class_weights="1,4,0.5,2")


@pytest.fixture(autouse=True)
def in_doubles() -> Iterator[None]:
    torch.set_default_dtype(torch.float64)
    yield
    torch.set_default_dtype(torch.float32)


@cache
def task_of(settings: TrainSettings) -> Points:
    return Points(settings)


def told(loop: Loop, kind: str = "step") -> list[dict[str, Any]]:
    return [event for event in loop.recorder.events if event["event"] == kind]  # type: ignore[attr-defined]


def train_spoilt(settings: TrainSettings, what: str, spoilt: range) -> list[Loop]:
    """Train two ranks; in the given steps, the loss or the gradient of the second one is NaN."""
    task = task_of(settings)

    def act(seat: Seat) -> Loop:
        loop = make_loop(task, settings, seat)
        compute, exchange = loop.strategy.compute, loop.strategy.exchange

        def spoil(batch: Any, objective: Any) -> tuple[float, float]:
            loss, weight = compute(batch, objective)
            is_spoilt = what == "loss" and seat.rank == 1 and loop.cursor.step in spoilt
            return (torch.nan if is_spoilt else loss), weight

        def spoil_gradient(tallies: torch.Tensor) -> SyncStats:
            stats = exchange(tallies)
            if what == "gradient" and loop.cursor.step in spoilt:
                next(gradient for _, gradient in loop.optimizer.gradients()).view(-1)[3] = torch.nan
            return stats

        loop.strategy.compute, loop.strategy.exchange = spoil, spoil_gradient  # type: ignore[method-assign]
        loop.run()
        return loop

    return together(2, act)


@pytest.mark.parametrize("what", ["loss", "gradient"])
def test_all_ranks_skip_a_step_that_is_not_finite_on_one(what: str) -> None:
    """Compared with plain SGD that skips the third batch."""
    plain = {"optimizer": "sgd", "momentum": 0.0, "clip": 0.0, "decay": "none", "warmup_epochs": 0.0, "lr": 0.3}
    settings = replace(BASE, strategy="allreduce", max_steps=5, **plain)
    task = task_of(settings)
    loops = train_spoilt(settings, what, range(2, 3))
    model = task.make_model()
    for k in (0, 1, 3, 4):
        batch = load_whole(task, 0, k)
        model.zero_grad()
        F.cross_entropy(model(batch), batch.labels).backward()
        for weight in model.parameters():
            weight.data.sub_(0.3 * weight.grad)
    for loop in loops:
        assert [event["loss"] is None for event in told(loop)] == [False, False, True, False, False]
        assert (loop.cursor.skipped, loop.cursor.step) == (1, 5)
        for name, weight in model.named_parameters():
            np.testing.assert_allclose(loop.optimizer.weights[name], weight.detach(), rtol=1e-9, atol=1e-12)


def test_training_gives_up_after_ten_skipped_steps_in_a_row() -> None:
    settings = replace(BASE, strategy="allreduce")
    with pytest.raises(TrainingError, match="10 steps in a row, the last at step 13"):
        train_spoilt(settings, "gradient", range(3, 13))
    loops = train_spoilt(settings, "loss", range(3, 12))
    assert [(loop.cursor.skipped, loop.cursor.step) for loop in loops] == [(9, 20)] * 2


def test_the_log_has_the_rows_of_every_worker_and_the_mean_loss_of_an_epoch() -> None:
    settings = replace(WEIGHTED, strategy="allreduce", shares="5:2:1")
    task = task_of(settings)
    loop = train_together(task, settings, 3)[0]
    for event, k in zip(told(loop), [*range(10), *range(10)], strict=True):
        epoch = event["epoch"] - 1
        parts = [load_part(task, epoch, k, rank, np.array([5.0, 2.0, 1.0])) for rank in range(3)]
        assert event["shares"] == [len(part) for part in parts]
        assert (event["samples"], event["tokens"]) == (3000, 6000)
        assert len(event["compute_seconds"]) == 3 and min(event["compute_seconds"]) > 0
    weight = np.array([1, 4, 0.5, 2])
    for epoch, event in enumerate(told(loop, "epoch")):
        sums = [weight[load_whole(task, epoch, k).labels].sum() for k in range(10)]
        steps = [step["loss"] for step in told(loop) if step["epoch"] == epoch + 1]
        assert event["train_loss"] == pytest.approx(np.average(steps, weights=sums))
    assert (loop.cursor.samples, loop.cursor.tokens) == (60_000, 120_000)


def test_dropout_is_on_in_every_epoch() -> None:
    """Measuring after an epoch turns it off."""
    loop = make_loop(task_of(BASE), BASE, Alone())
    compute, seen = loop.strategy.compute, []

    def look(batch: Any, objective: Any) -> tuple[float, float]:
        seen.append(loop.model.training)
        return compute(batch, objective)

    loop.strategy.compute = look  # type: ignore[method-assign]
    loop.run()
    assert seen == [True] * 20


@pytest.mark.parametrize(("strategy", "steps"), [("single", [4, 8, 10, 12, 16, 20, 20]), ("local-sgd", [5, 10, 10])])
def test_checkpoints_are_made_when_due_and_after_each_epoch(strategy: str, steps: list[int]) -> None:
    apart = {"sync_every": 5} if strategy == "local-sgd" else {}
    settings = replace(BASE, strategy=strategy, checkpoint_steps=4, epochs=2 if strategy == "single" else 1, **apart)
    (loop,) = train_together(task_of(settings), settings, 1)
    assert [saved.step for saved in loop.recorder.checkpoints] == steps  # type: ignore[attr-defined]


def test_the_time_limit_ends_a_run() -> None:
    settings = replace(BASE, max_seconds=1e-6)
    (loop,) = train_together(task_of(settings), settings, 1)
    assert loop.cursor.step == 2  # the first step begins in time
    assert len(told(loop, "epoch")) == 1


def test_the_learning_rate_ends_with_the_time_limit() -> None:
    settings = replace(BASE, max_seconds=10.0, warmup_epochs=0.0)

    def act(seat: Seat) -> Loop:
        loop = make_loop(task_of(settings), settings, seat)
        loop.cursor.seconds = 8.0  # a resumed run, whose second rank is later than the first
        loop.cursor.seconds += seat.rank
        loop.run()
        return loop

    first, second = together(2, act)
    rates = [event["lr"] for event in told(first)]
    peak = first.schedule.peak
    assert rates[0] == pytest.approx(peak) and rates[1] < 0.16 * peak  # about 15 % of the time is left
    assert rates == sorted(rates, reverse=True)
    assert [second._rate(step) for step in (1, 5)] == [first._rate(step) for step in (1, 5)]


APART = {"sync_every": 4}
RESUMED: list[tuple[str, int, dict[str, Any]]] = [
    ("single", 1, {"optimizer": "adam", "weight_decay": 0.01}),
    ("single", 1, {"optimizer": "sgd"}),
    ("allreduce", 3, {"shares": "5:2:1"}),
    ("allreduce", 2, {"compress": "top-k", "top_k": 0.1}),
    ("local-sgd", 2, APART),
    ("diloco", 2, APART),
    ("model-parallel", 2, {}),
]


@pytest.mark.parametrize(("strategy", "size", "changes"), RESUMED)
def test_a_resumed_run_ends_with_the_same_bits(strategy: str, size: int, changes: dict[str, Any]) -> None:
    settings = replace(BASE, strategy=strategy, checkpoint_steps=4, **changes)
    task = task_of(settings)
    whole = train_together(task, settings, size)
    saved = {one.step: one for loop in whole[::-1] for one in loop.recorder.checkpoints}  # type: ignore[attr-defined]
    if strategy == "model-parallel":  # each rank saves its part
        for loop in whole[1:]:
            for one in loop.recorder.checkpoints:  # type: ignore[attr-defined]
                saved[one.step].tensors.update(one.tensors)
    for step in (8, 10, 14 if "sync_every" in changes else 12):
        again = train_together(task, settings, size, saved[step])
        for before, after in zip(whole, again, strict=True):
            assert after.cursor.step == 20
            assert [event["loss"] for event in told(after)] == [e["loss"] for e in told(before) if e["step"] > step]
            assert told(after, "epoch")[-1]["train_loss"] == told(before, "epoch")[-1]["train_loss"]
            for name, weight in before.optimizer.weights.items():
                assert torch.equal(after.optimizer.weights[name], weight), (step, name)


def test_hogwild_counts_every_row(tmp_path: Path) -> None:
    settings = replace(BASE, strategy="hogwild", sync_every=4)
    task = task_of(settings)

    def act(seat: Seat) -> Loop:
        loop = make_loop(task, settings, seat, tmp_path / "meeting")
        loop.run()
        return loop

    for loop in together(2, act):
        assert [event["step"] for event in told(loop)] == [4, 8, 10, 14, 18, 20]
        assert [event["samples"] for event in told(loop)] == [12_000, 12_000, 6_000] * 2
        assert all(sum(event["shares"]) == event["samples"] for event in told(loop))
