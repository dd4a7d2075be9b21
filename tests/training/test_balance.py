"""Balancing in real runs: learning is unchanged, shares follow speed, ranks decide alike, a resumed run goes on."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from helpers.training import events, losses, run

from tenor.errors import UsageError
from tenor.store.order import Order
from tenor.training.balance import Balance
from tenor.training.loader import LEAD, Ahead

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
        np.testing.assert_array_equal(again.shares(0, k), state.shares(0, k))
    assert again.shares(0, 29)[0] > 1.5 * again.shares(0, 29)[1]


def make_balance(mode: str, size: int = 2, caps: float = np.inf) -> Balance:
    lengths = np.random.default_rng(0).integers(20, 120, 4000).astype(np.int32)
    return Balance(mode, Order(lengths, 64, 0), np.ones(size), np.full(size, caps))


def test_a_checkpoint_of_another_number_of_workers_is_left_alone() -> None:
    two, three = make_balance("steps:3"), make_balance("steps:3", size=3)
    for k in range(9):
        two.note(0, k, [3000.0, 3000.0], [0.1, 0.3])
    three.restore(two.state())
    np.testing.assert_array_equal(three.shares(0, 20), np.ones(3))


def test_no_batch_already_cut_changes_its_shares() -> None:
    """However far each rank's loader is ahead, all must have cut a batch alike."""
    balance = make_balance("steps:1")
    asked: dict[int, np.ndarray] = {}
    for k in range(40):
        for ahead in range(k, k + LEAD):  # the furthest a loader can be when batch k is done
            asked.setdefault(ahead, balance.shares(0, ahead))
        np.testing.assert_array_equal(asked[k], balance.shares(0, k))
        balance.note(0, k, [3000.0, 3000.0], [0.1, 0.1 + 0.02 * (k % 20)])
    assert len({tuple(shares) for shares in asked.values()}) > 3


def test_the_loader_is_never_further_ahead_than_it_says() -> None:
    import time

    made: list[int] = []
    with Ahead(lambda k: made.append(k) or k, 0, 50) as batches:
        for k in _slowly(batches, 12):
            time.sleep(0.05)  # the loader runs as far as it can
            assert max(made) < k + LEAD


def _slowly(batches: Iterator[int], count: int) -> Iterator[int]:
    for _, k in zip(range(count), batches, strict=False):
        yield k


def test_caps_hold_from_the_first_batch() -> None:
    balance = make_balance("steps:2", caps=5000.0)
    for k in range(30):
        shares = balance.shares(0, k)
        assert shares.max() <= 5000
        balance.note(0, k, shares.tolist(), [0.1, 0.9])


def test_wrong_words_are_refused(data: Path, tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="--balance"):
        run(data, tmp_path / "a", balance="sometimes")
    with pytest.raises(UsageError, match="--slowdown names rank 2"):
        run(data, tmp_path / "b", workers="2", slowdown="2:3")
