"""Scenario `balance`: its mixes, its ideal speed, and one real run at the smallest size."""

from __future__ import annotations

import statistics
from pathlib import Path
from typing import Any

import pytest

from tenor.bench.scenarios import balance
from tenor.bench.settings import BenchSettings
from tenor.errors import UsageError
from tenor.progress import SILENT
from tenor.training.balancing.slowdown import parse_slowdown
from tenor.training.settings import TrainSettings


@pytest.mark.parametrize("name", balance.MIXES)
def test_the_slowdown_of_a_mix_matches_its_name(name: str) -> None:
    mix = balance.Mix.parse(name)
    slowdown = parse_slowdown(mix.slowdown(), len(mix.before))
    ranks = range(len(mix.before))
    for step, speeds in ((1, mix.before), (balance.STEPS // 2, mix.before), (balance.STEPS // 2 + 1, mix.after)):
        assert tuple(slowdown.factor(rank, step) for rank in ranks) == speeds


def test_a_worker_that_slows_down_halfway() -> None:
    mix = balance.Mix.parse("1:1→3")
    assert (mix.before, mix.after) == ((1, 1), (1, 3))


def measured(*speeds: float) -> dict[str, Any]:
    """Return a row of a result with these tokens per second in each turn."""
    return {"tokens_per_s": statistics.median(speeds), "spread": {"tokens_per_s": {"values": list(speeds)}}}


def test_the_ideal_of_two_different_halves() -> None:
    row = balance._compared(measured(120.0), [60.0], [[120.0], [80.0]], [[60.0], [40.0]])
    assert row["share_of_ideal"] == pytest.approx(120 * 4.5 / 600)  # 300 tokens in each half take 1.5 s and 3 s
    assert row["times_off"] == pytest.approx(2.0)
    assert row["alone_tokens_per_s"] == [[120.0, 80.0], [60.0, 40.0]]


def test_a_slow_turn_does_not_change_the_ratios() -> None:
    alone = [[100.0, 50.0, 110.0], [100.0, 50.0, 90.0]]
    row = balance._compared(measured(180.0, 90.0, 180.0), [90.0, 45.0, 120.0], alone, alone)
    assert row["spread"]["share_of_ideal"]["values"] == pytest.approx([0.9, 0.9, 0.9])
    assert row["spread"]["times_off"]["values"] == pytest.approx([2.0, 2.0, 1.5])
    assert row["times_off"] == pytest.approx(2.0)


def test_two_runs_of_a_single_worker_are_averaged_in_each_turn() -> None:
    assert balance._speeds([measured(100.0, 50.0), measured(120.0, 70.0)]) == [110.0, 60.0]


def test_rates_ignore_the_first_step_of_each_epoch() -> None:
    seconds = {1: [9.0, 9.5, 10.0], 2: [20.0, 21.0]}  # the rest is start-up and validation
    steps = [{"epoch": e, "seconds": s, "samples": 30, "tokens": 60 * s} for e, at in seconds.items() for s in at]
    rates = balance._rates(steps)
    assert rates["samples_per_s"] == pytest.approx(90 / 2.0)
    assert rates["tokens_per_s"] == pytest.approx(60 * (9.5 + 10.0 + 21.0) / 2.0)


def test_short_rows_do_not_make_a_single_worker_look_fast(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def train(data: Path, workers: int, steps: int, **changes: Any) -> list[dict[str, Any]]:
        length = 10 if workers == 1 else 40  # 1,000 tokens per second and worker, for any rows
        slow = [{"samples": 100, "tokens": 100 * length, "seconds": length * 0.1 / workers * step} for step in range(9)]
        return [{"shares": [100] * workers, "epoch": 1, **event} for event in slow]

    monkeypatch.setattr(balance, "_train", train)
    for name in ("generate", "prepare"):
        monkeypatch.setattr(balance, name, lambda *_: None)
    for row in balance.run(BenchSettings(repeats=1, rows="1:1"), tmp_path, SILENT).rows:
        assert row["share_of_ideal"] == pytest.approx(1.0)


def fake_train(data: Path, workers: int, steps: int, **changes: Any) -> list[dict[str, Any]]:
    """Emulate perfectly balanced workers; each trains on 100 rows per second divided by its slowdown factor."""
    slowdown = parse_slowdown(changes["slowdown"], workers)
    slowness = [slowdown.factor(rank, steps) for rank in range(workers)]
    rate = {"off": workers / max(slowness), balance.MODES["steps"]: 0.9 * sum(1 / slow for slow in slowness)}
    rows = [round(240 / slow / sum(1 / other for other in slowness)) for slow in slowness]
    pace = 100.0 * rate.get(changes.get("balance", ""), 1 / slowness[0])
    event = {"shares": rows, "epoch": 1, "samples": 240, "tokens": 9600}
    return [{**event, "seconds": 240 / pace * step} for step in range(steps)]


def test_every_mix_is_compared_with_its_ideal_in_every_mode(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(balance, "_train", fake_train)
    for name in ("generate", "prepare"):
        monkeypatch.setattr(balance, name, lambda *_: None)
    result = balance.run(BenchSettings(repeats=1, warmups=0), tmp_path, SILENT)
    shares = {(row["mix"], row["mode"]): row["share_of_ideal"] for row in result.rows}
    assert set(shares) == {(mix, mode) for mix in balance.MIXES for mode in balance.MODES}
    for mix in ("1:1", "1:2", "1:3", "2:2:6"):
        assert shares[mix, "steps"] == pytest.approx(0.9)
    assert shares["1:1", "off"] == pytest.approx(1.0)
    assert shares["1:3", "off"] == pytest.approx((2 / 3) / (4 / 3))
    assert shares["2:2:6", "off"] == pytest.approx((3 / 6) / (7 / 6))


def test_mixes_are_chosen_by_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(balance, "_train", fake_train)
    for name in ("generate", "prepare"):
        monkeypatch.setattr(balance, name, lambda *_: None)
    result = balance.run(BenchSettings(repeats=1, warmups=0, rows="1:2,1:1→3"), tmp_path, SILENT)
    assert [row["mix"] for row in result.rows] == ["1:2"] * 3 + ["1:1→3"] * 3
    with pytest.raises(UsageError, match="rows has the unknown name"):
        balance.run(BenchSettings(rows="1:7"), tmp_path, SILENT)


@pytest.mark.soak
def test_a_small_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(balance, "MIXES", ("1:3",))
    monkeypatch.setattr(balance, "TRAINING", TrainSettings(threads=1, batch_size=64, hidden=24, embedding_dim=8))
    for name, value in (("NUM_ROWS", 2000), ("STEPS", 20), ("STEPS_ALONE", 14)):
        monkeypatch.setattr(balance, name, value)
    result = balance.run(BenchSettings(repeats=1, warmups=0), tmp_path, SILENT)
    assert [(row["mix"], row["mode"]) for row in result.rows] == [("1:3", mode) for mode in ("off", "epoch", "steps")]
    for row in result.rows:
        assert len(row["alone_tokens_per_s"]) == 2
        assert row["share_of_ideal"] == pytest.approx(row["tokens_per_s"] / sum(row["alone_tokens_per_s"]), rel=1e-3)
