"""Balancing in real runs: learning is unchanged, shares follow speed, ranks decide alike, a resumed run goes on."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from helpers.training import events, losses, run

from tenor.errors import UsageError
from tenor.store.order import Order
from tenor.training.balance import Balance

SLOW = {"workers": "2", "slowdown": "1:8", "batch_size": 128, "hidden": 48, "dropout": 0.0}


def test_every_step_has_the_loss_of_the_unbalanced_run(data: Path, tmp_path: Path) -> None:
    for mode in ("off", "steps:3"):
        run(data, tmp_path / mode[:3], max_steps=24, precision="fp64", balance=mode, **{**SLOW, "dropout": 0.2})
    np.testing.assert_allclose(losses(tmp_path / "ste"), losses(tmp_path / "off"), rtol=1e-9, atol=0)
    plain, balanced = (events(tmp_path / name) for name in ("off", "ste"))
    assert [event["samples"] for event in balanced] == [event["samples"] for event in plain]
    assert [event["tokens"] for event in balanced] == [event["tokens"] for event in plain]
    assert all(sum(event["shares"]) == event["samples"] for event in balanced)
    assert len({tuple(event["shares"]) for event in balanced}) > 1, "the shares never moved: the test shows nothing"
    fast, slow = np.sum([event["shares"] for event in balanced[-3:]], axis=0)
    assert fast > 1.2 * slow  # a busy machine hides part of an emulated slowness


def test_by_epoch_shares_change_between_epochs_alone(data: Path, tmp_path: Path) -> None:
    run(data, tmp_path / "run", epochs=2, balance="epoch", **SLOW)
    first, second = (
        [event["shares"] for event in events(tmp_path / "run") if event["epoch"] == number] for number in (1, 2)
    )
    whole = [shares for shares in first if sum(shares) == 128]
    assert max(abs(a - b) for a, b in whole) < 30  # equal tokens, so nearly equal rows
    assert np.mean([a / sum((a, b)) for a, b in second]) > 0.6


def test_the_shares_survive_a_checkpoint() -> None:
    state = make_balance("steps:3")
    for k in range(9):
        state.note(0, k, [3000.0, 3000.0], [0.1, 0.3])
    saved = json.loads(json.dumps(state.state()))
    again = make_balance("steps:3")
    again.restore(saved)
    for k in range(9, 30):
        np.testing.assert_array_equal(again.shares(0, k)[1], state.shares(0, k)[1])
    fast, slow = again.shares(0, 29)[1]
    assert fast > 1.5 * slow


def make_balance(mode: str, size: int = 2, caps: float = np.inf) -> Balance:
    lengths = np.random.default_rng(0).integers(20, 120, 4000).astype(np.int32)
    return Balance(mode, Order(lengths, 64, 0), np.ones(size), np.full(size, caps))


def test_a_checkpoint_of_another_number_of_workers_is_left_alone() -> None:
    two, three = make_balance("steps:3"), make_balance("steps:3", size=3)
    for k in range(9):
        two.note(0, k, [3000.0, 3000.0], [0.1, 0.3])
    three.restore(two.state())
    np.testing.assert_array_equal(three.shares(0, 20)[1], np.ones(3))


def test_a_decision_holds_from_the_next_batch_on() -> None:
    """However far each rank's loader was ahead: what it had cut before is told by the decision's number."""
    balance = make_balance("steps:5")
    cut = {k: balance.shares(0, k) for k in range(10)}
    for k in range(5):
        assert cut[k][0] == balance.decision.number
        balance.note(0, k, [3000.0, 3000.0], [0.1, 0.3])
    number, shares = balance.shares(0, 5)
    assert number != cut[5][0]
    assert shares[0] > 1.5 * shares[1]


def test_batches_cut_before_a_decision_are_cut_again(data: Path, tmp_path: Path) -> None:
    run(data, tmp_path / "run", max_steps=8, balance="steps:5", **SLOW)
    parts = [event["shares"][0] / event["samples"] for event in events(tmp_path / "run")]
    assert max(parts[:5]) < 0.6 < parts[5]


def test_caps_hold_from_the_first_batch() -> None:
    balance = make_balance("steps:2", caps=5000.0)
    for k in range(30):
        shares = balance.shares(0, k)[1]
        assert shares.max() <= 5000
        balance.note(0, k, shares.tolist(), [0.1, 0.9])


def test_a_share_of_nothing_beside_caps_is_one_row() -> None:
    lengths = np.full(64, 10, np.int32)
    balance = Balance("off", Order(lengths, 64, 0), np.array([3.0, 1.0, 0.0]), np.full(3, 5000.0))
    np.testing.assert_allclose(balance.shares(0, 0)[1], [470, 160, 10], atol=10)


def test_wrong_words_are_refused(data: Path, tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="--balance"):
        run(data, tmp_path / "a", balance="sometimes")
    with pytest.raises(UsageError, match="--slowdown names rank 2"):
        run(data, tmp_path / "b", workers="2", slowdown="2:3")
