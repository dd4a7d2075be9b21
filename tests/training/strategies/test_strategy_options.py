"""Options are refused if they would silently have no effect."""

from __future__ import annotations

from dataclasses import fields, replace
from pathlib import Path

import pytest
from helpers.strategies import POINTS

from tenor.bench.settings import BenchSettings
from tenor.errors import UsageError
from tenor.settings import build
from tenor.training.settings import TrainSettings
from tenor.training.strategies import make_strategy
from tenor.training.traits import STRATEGIES
from tenor.world import World

OWN = {field.name: field.metadata["owners"] for field in fields(TrainSettings) if field.metadata["owners"]}
OTHER = {
    "staleness": "2",
    "async_data": "random",
    "compress": "fp16",
    "stale_rate": True,
}  # numbers: default + 1


def changed(name: str) -> object:
    default = next(field.default for field in fields(TrainSettings) if field.name == name)
    return OTHER[name] if name in OTHER else default + 1


@pytest.mark.parametrize("name", OWN)
def test_an_option_of_another_strategy_is_refused(name: str) -> None:
    for strategy in STRATEGIES:
        settings = replace(POINTS, strategy=strategy, **{name: changed(name)})
        if strategy in OWN[name]:
            make_strategy(settings, World(0, 3, 0, 3) if strategy == "hybrid" else World())
        else:
            with pytest.raises(UsageError, match=f"{name}.* with strategy {strategy}") as told:
                make_strategy(settings, World())
            assert all(owner in str(told.value) for owner in OWN[name])


def test_owners_are_strategies() -> None:
    assert {strategy for owners in OWN.values() for strategy in owners} <= set(STRATEGIES)


def test_numbers_may_be_given_as_numbers_or_text(tmp_path: Path) -> None:
    """Python and TOML may give numbers where the command line gives text; config.json always has text."""
    numbers = TrainSettings(workers=1, staleness=2, token_caps=9000)
    assert numbers == TrainSettings(workers="1", staleness="2", token_caps="9000")
    assert (numbers.workers, numbers.staleness, numbers.token_caps) == (1, "2", "9000")
    (tmp_path / "run.toml").write_text("workers = 1\nstaleness = 2\ntoken-caps = 9000\n")
    assert build(TrainSettings, {}, tmp_path / "run.toml") == numbers
    (tmp_path / "bench.toml").write_text("workers = 2\n")
    assert build(BenchSettings, {}, tmp_path / "bench.toml").worker_counts() == (2,)


@pytest.mark.parametrize(
    ("name", "value"), [("workers", 0), ("workers", -1), ("workers", 1.5), ("workers", True), ("staleness", -1)]
)
def test_invalid_counts_are_refused(name: str, value: object) -> None:
    with pytest.raises(UsageError, match=f"{name} cannot be {value}"):
        TrainSettings(**{name: value})  # type: ignore[arg-type]


@pytest.mark.parametrize(("name", "value", "other"), [("momentum", 0.5, "optimizer"), ("top_k", 0.5, "compress")])
def test_an_option_of_another_rule_is_refused(name: str, value: float, other: str) -> None:
    with pytest.raises(UsageError, match=f"{name} 0.5 has no effect with {other} "):
        replace(POINTS, **{name: value})
    assert replace(POINTS, **{name: value, other: {"optimizer": "sgd", "compress": "top-k"}[other]})


@pytest.mark.parametrize("name", ["clip", "weight_decay", "max_steps", "max_seconds", "patience", "reference_batch"])
@pytest.mark.parametrize("value", [-1, float("nan"), float("inf")])
def test_negative_and_infinite_numbers_are_refused(name: str, value: float) -> None:
    with pytest.raises(UsageError, match=name):
        TrainSettings(**{name: value})  # type: ignore[arg-type]


def test_options_without_effect_are_refused() -> None:
    with pytest.raises(UsageError, match="patience"):
        TrainSettings(patience=2, keep="last")
    with pytest.raises(UsageError, match="lr"):
        TrainSettings(lr=float("inf"))
