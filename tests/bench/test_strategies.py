"""`tenor bench strategies`: every strategy in one table, the original experiment beside it."""

from pathlib import Path

import pytest

from tenor.bench import strategies
from tenor.bench.scenarios import bench
from tenor.bench.settings import BenchSettings
from tenor.errors import UsageError
from tenor.training.strategies import STRATEGIES


def test_every_strategy_is_measured() -> None:
    assert set(strategies.NAMES) == set(STRATEGIES)
    contenders = strategies._contenders(BenchSettings(task="points", workers="2,3,8"), Path("points"))
    assert [contender.name for contender in contenders[:5]] == [
        "single-1",
        "allreduce-2",
        "allreduce-3",
        "allreduce-8",
        "local-sgd-2",
    ]
    assert contenders[3].facts["original_accuracy"] == 0.523
    assert "original_accuracy" not in contenders[2].facts
    with pytest.raises(UsageError, match="no strategy"):
        strategies._contenders(BenchSettings(rows="magic"), Path("points"))


def test_rows_hold_speed_accuracy_and_bytes() -> None:
    settings = BenchSettings(task="points", workers="2", repeats=1, warmups=0, rows="single,local-sgd")
    alone, two = bench("strategies", settings).rows
    assert (alone["name"], alone["speed_up"], alone["efficiency"], alone["bytes_sent"]) == ("single-1", 1.0, 1.0, 0)
    assert two["bytes_sent"] > 0 and two["efficiency"] == pytest.approx(two["speed_up"] / 2)
    for row in (alone, two):
        assert 0.25 < row["test_accuracy"] < 1.0 and row["train_loss"] > 0 and row["seconds"] > 0
