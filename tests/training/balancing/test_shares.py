"""Balancing in real runs: the same losses, shares that follow speeds, equal decisions on all ranks, resumed runs."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from helpers.training import events, losses, run
from hypothesis import given
from hypothesis import strategies as st

from tenor.errors import TrainingError, UsageError
from tenor.store.order import Order, split
from tenor.training.balancing.shares import MAX_UNLEARNT, SharePlan
from tenor.training.loader import DEPTH

SLOW = {"workers": "2", "slowdown": "1:8", "batch_size": 128, "hidden": 48, "dropout": 0.0}


@pytest.mark.serial
def test_every_step_has_the_loss_of_the_unbalanced_run(data: Path, tmp_path: Path) -> None:
    for mode in ("off", "steps:3"):
        run(data, tmp_path / mode[:3], max_steps=24, precision="fp64", balance=mode, **{**SLOW, "dropout": 0.2})
    np.testing.assert_allclose(losses(tmp_path / "ste"), losses(tmp_path / "off"), rtol=1e-9, atol=0)
    plain, balanced = (events(tmp_path / name) for name in ("off", "ste"))
    assert [event["samples"] for event in balanced] == [event["samples"] for event in plain]
    assert [event["tokens"] for event in balanced] == [event["tokens"] for event in plain]
    assert len({tuple(event["shares"]) for event in balanced}) > 1, "the shares never moved: the test shows nothing"
    fast, slow = np.sum([event["shares"] for event in balanced[-3:]], axis=0)
    assert fast > 1.2 * slow  # a busy machine hides part of an emulated slowness


@pytest.mark.serial
def test_compute_seconds_are_those_of_the_step_itself(data: Path, tmp_path: Path) -> None:
    run(data, tmp_path / "run", max_steps=7, **{**SLOW, "slowdown": "1:30@5-5"})
    seconds = [event["compute_seconds"][1] for event in events(tmp_path / "run")]
    assert seconds[4] > 3 * max(seconds[2], seconds[3], seconds[5], seconds[6])
    assert min(seconds) > 0


@pytest.mark.serial
def test_by_epoch_shares_change_between_epochs_alone(data: Path, tmp_path: Path) -> None:
    run(data, tmp_path / "run", epochs=2, balance="epoch", **SLOW)
    first, second = (
        [event["shares"] for event in events(tmp_path / "run") if event["epoch"] == number] for number in (1, 2)
    )
    whole = [shares for shares in first if sum(shares) == 128]
    assert max(abs(a - b) for a, b in whole) < 30  # equal tokens, so nearly equal rows
    assert np.mean([a / sum((a, b)) for a, b in second]) > 0.6


def test_the_shares_survive_a_checkpoint() -> None:
    state = make_plan("steps:3")
    for k in range(9):
        state.note(0, k, [3000.0, 3000.0], [0.1, 0.3])
    saved = json.loads(json.dumps(state.state()))
    again = make_plan("steps:3")
    again.restore(saved)
    for k in range(9, 30):
        np.testing.assert_array_equal(again.shares(0, k)[1], state.shares(0, k)[1])
    fast, slow = again.shares(0, 29)[1]
    assert fast > 1.5 * slow


def make_plan(mode: str, size: int = 2, caps: float = np.inf) -> SharePlan:
    lengths = np.random.default_rng(0).integers(20, 120, 4000).astype(np.int32)
    return SharePlan(mode, Order(lengths, 64, 0), np.ones(size), np.full(size, caps))


def test_a_checkpoint_of_another_number_of_workers_is_left_alone() -> None:
    two, three = make_plan("steps:3"), make_plan("steps:3", size=3)
    for k in range(9):
        two.note(0, k, [3000.0, 3000.0], [0.1, 0.3])
    three.restore(two.state())
    afresh = make_plan("steps:3", size=3)
    np.testing.assert_array_equal(three.shares(0, 20)[1], afresh.shares(0, 20)[1])
    for k in (21, 22):  # what it sees first it acts upon at once, whatever the number of the step
        three.note(0, k, [3000.0] * 3, [0.1, 0.3, 0.1])
    assert three.decision.number == 1


def test_a_decision_holds_from_the_next_batch_on() -> None:
    """The number of the decision shows which batches a loader divided too early, however far ahead it was."""
    plan = make_plan("steps:5")
    cut = {k: plan.shares(0, k) for k in range(10)}
    for k in range(2):  # the first step is a warm-up, the second is acted upon at once
        assert cut[k][0] == plan.decision.number
        plan.note(0, k, [3000.0, 3000.0], [0.1, 0.3])
    number, shares = plan.shares(0, 2)
    assert number != cut[2][0]
    assert shares[0] > 1.5 * shares[1]


def test_after_the_first_steps_decisions_come_as_often_as_asked_for() -> None:
    plan, changes = make_plan("steps:5"), []
    for k in range(40):  # one worker slows down by half every time that it was relieved
        before, (fast, slow) = plan.decision.number, plan.shares(0, k)[1]
        plan.note(0, k, [fast, slow], [1e-5 * fast, 1e-5 * slow * 1.5 ** (1 + len(changes))])
        changes += [k + 1] if plan.decision.number != before else []
    assert changes[0] == 2
    assert len(changes) > 3
    assert all(step % 5 == 0 for step in changes if step > 5)


def test_saving_changes_no_decision() -> None:
    """Some ranks write checkpoints and some do not."""
    rng, (one, other) = np.random.default_rng(0), (make_plan("steps:7") for _ in range(2))
    for k in range(60):
        seconds = [0.1, 0.1 + 0.005 * k] * rng.lognormal(0, 0.1, 2)
        for plan in (one, other):
            plan.note(0, k, [3000.0, 3000.0], seconds)
        if k % 5 == 0:
            one.state()
        assert one.decision.number == other.decision.number
        np.testing.assert_array_equal(one.shares(0, k + 1)[1], other.shares(0, k + 1)[1])
    assert one.decision.number > 1


def test_little_is_left_to_learn_when_an_epoch_ends() -> None:
    plan = make_plan("epoch")
    for k in range(MAX_UNLEARNT + 20):
        plan.note(0, k % 40, [3000.0, 3000.0], [0.1, 0.3])
        assert len(plan.unlearnt) < MAX_UNLEARNT
    assert plan.decision.number == 0
    plan.note(0, plan.order.num_batches - 1, [3000.0, 3000.0], [0.1, 0.3])
    assert plan.decision.number == 1


def test_the_first_step_after_a_resume_is_not_learned_from() -> None:
    before, again = make_plan("steps:1"), make_plan("steps:1")
    for k in range(4):
        before.note(0, k, [3000.0, 3000.0], [0.1, 0.1])
    again.restore(before.state())
    learnt = again.state()["balancer"]["fit"]
    again.note(0, 4, [3000.0, 3000.0], [0.1, 0.9])  # libraries load
    assert again.state()["balancer"]["fit"] == learnt


def test_batches_cut_before_a_decision_are_cut_again(data: Path, tmp_path: Path) -> None:
    run(data, tmp_path / "run", max_steps=8, balance="steps:5", **SLOW)
    parts = [event["shares"][0] / event["samples"] for event in events(tmp_path / "run")]
    ready = slice(2, 2 + DEPTH)  # when the first decision may come, after the second step
    assert max(parts[:2]) < 0.6 < max(parts[ready])


def test_caps_hold_from_the_first_batch() -> None:
    plan = make_plan("steps:2", caps=5000.0)
    for k in range(30):
        shares = plan.shares(0, k)[1]
        assert shares.max() <= 5000
        plan.note(0, k, shares.tolist(), [0.1, 0.9])


@pytest.mark.parametrize("window", [1 << 18, 64])
def test_caps_that_cannot_hold_are_refused_at_the_start(window: int) -> None:
    lengths = np.append(np.full(255, 60), 100).astype(np.int32)
    order = Order(lengths, 16, 0, window=window)
    with pytest.raises(TrainingError, match="a row of 100 tokens exceeds every worker's token cap"):
        SharePlan("off", order, np.ones(2), np.full(2, 99.0))
    with pytest.raises(TrainingError, match="a batch of 16 rows of up to"):
        SharePlan("off", order, np.ones(2), np.full(2, 479.0))  # they hold seven rows of 60 tokens each
    SharePlan("off", order, np.ones(2), np.array([1600.0, 5.0]))


@given(st.lists(st.integers(1, 50), min_size=1, max_size=60), st.integers(1, 9), st.integers(1, 30), st.integers(1, 9))
def test_every_epoch_has_a_batch_as_long_as_the_longest(some: list[int], batch: int, window: int, block: int) -> None:
    order = Order(np.array(some, np.int32), batch, 0, window=window, block=block)
    promised = order.longest_batch()
    for epoch in range(3):
        batches = [order.lengths[order.batch(epoch, k)] for k in range(order.num_batches)]
        assert any(len(rows) == len(promised) and (rows >= promised).all() for rows in batches)
        if window >= len(some) + batch:
            assert any(np.array_equal(rows, promised) for rows in batches)
            assert all((rows <= promised[: len(rows)]).all() for rows in batches)


def test_a_share_of_nothing_beside_caps_is_one_row() -> None:
    lengths = np.full(64, 10, np.int32)
    plan = SharePlan("off", Order(lengths, 64, 0), np.array([3.0, 1.0, 0.0]), np.full(3, 5000.0))
    np.testing.assert_allclose(plan.shares(0, 0)[1], [470, 160, 10], atol=10)


def play(plan: SharePlan, slowness: list[float], steps: int = 40) -> np.ndarray:
    """Simulate workers of the given slowness. Returns the rows of each worker in each step: (steps, workers)."""
    order, rows = plan.order, []
    rng = np.random.default_rng(0)
    for step in range(steps):
        epoch, k = divmod(step, order.num_batches)
        lengths = order.lengths[order.batch(epoch, k)]
        cuts = split(lengths, plan.shares(epoch, k)[1])
        rows.append([cut.stop - cut.start for cut in cuts])
        tokens = np.array([lengths[cut].max(initial=0) * 1.0 for cut in cuts]) * rows[-1]
        seconds = (2e-3 + 2e-5 * tokens) * slowness * rng.lognormal(0, 0.05, len(slowness))
        plan.note(epoch, k, tokens.tolist(), seconds.tolist())
    return np.array(rows)


@pytest.mark.parametrize(
    ("shares", "slowness", "batch"),
    [
        ([1, 1, 1], [1, 4, 1], 4),  # by tokens alone a worker would often get none
        ([1, 1, 1], [1, 4, 1], 3),
        ([100, 1], [1, 1], 64),
        ([1, 0], [1, 1], 64),
        ([1] * 48, [4] + [1] * 47, 64),
    ],
)
@pytest.mark.parametrize("mode", ["steps:3", "epoch"])
def test_nobody_is_starved_by_the_shares_a_run_starts_with(
    shares: list[float], slowness: list[float], batch: int, mode: str
) -> None:
    lengths = np.repeat(np.array([30, 60, 90], np.int32), 4 * batch)[: -(batch // 2)]
    order = Order(lengths, batch, 0)  # the last batch of an epoch is half as large: it may have too few rows for all
    plan = SharePlan(mode, order, np.array(shares, float), np.full(len(shares), np.inf))
    rows = play(plan, slowness)
    assert rows[rows.sum(axis=1) >= len(shares)].min() >= 1
    assert plan.decision.number >= 1
    if len(shares) == 2:
        assert rows[-8:].sum(axis=0).min() > 0.4 * rows[-8:].sum()  # the two are equally fast


def test_a_worker_that_never_gets_a_row_keeps_nobody_from_deciding() -> None:
    lengths = np.full(640, 50, np.int32)
    plan = SharePlan("steps:3", Order(lengths, 64, 0), np.ones(3), np.array([np.inf, np.inf, 49.0]))
    rows = play(plan, [1, 3, 1])
    assert rows[:, 2].max() == 0
    assert rows[-1, 0] > 1.5 * rows[-1, 1]


@given(st.lists(st.integers(1, 200), min_size=8, max_size=64), st.integers(2, 4))
def test_equal_shares_are_cut_alike_with_balancing_and_without(some: list[int], size: int) -> None:
    order = Order(np.array(some, np.int32), len(some), 0)
    lengths = order.lengths[order.batch(0, 0)]
    off, on = (
        SharePlan(mode, order, np.ones(size), np.full(size, np.inf)).shares(0, 0)[1] for mode in ("off", "epoch")
    )
    plain = [cut.stop - cut.start for cut in split(lengths, off)]
    if min(plain) > 1 or lengths[0] == lengths[-1]:
        assert [cut.stop - cut.start for cut in split(lengths, on)] == plain


def test_fixed_shares_stay_as_they_are() -> None:
    plan = SharePlan("off", Order(np.full(64, 9, np.int32), 64, 0), np.array([1.0, 0.0]), np.full(2, np.inf))
    assert play(plan, [1, 1])[:, 1].max() == 0


def test_wrong_words_are_refused(data: Path, tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="balance"):
        run(data, tmp_path / "a", balance="sometimes")
    with pytest.raises(UsageError, match="slowdown names rank 2"):
        run(data, tmp_path / "b", workers=2, slowdown="2:3")
