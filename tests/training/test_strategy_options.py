"""Options are refused where they would silently do nothing."""

from __future__ import annotations

from dataclasses import fields, replace

import pytest
from helpers.strategies import POINTS

from tenor.errors import UsageError
from tenor.settings import owned
from tenor.training.settings import TrainSettings
from tenor.training.strategies import STRATEGIES, make_strategy
from tenor.world import World

OWN = owned(TrainSettings)
OTHER = {"staleness": "2", "async_data": "random", "compress": "fp16", "stale_rate": True}  # numbers: one more


def changed(name: str) -> object:
    default = next(field.default for field in fields(TrainSettings) if field.name == name)
    return OTHER[name] if name in OTHER else default + 1


@pytest.mark.parametrize("name", OWN)
def test_an_option_of_another_strategy_is_refused(name: str) -> None:
    option = f"--{name.replace('_', '-')}"
    for strategy in STRATEGIES:
        settings = replace(POINTS, strategy=strategy, **{name: changed(name)})
        if strategy in OWN[name]:
            make_strategy(settings, World(0, 3, 0, 3) if strategy == "hybrid" else World())
        else:
            with pytest.raises(UsageError, match=f"{option}.* with --strategy {strategy}") as told:
                make_strategy(settings, World())
            assert all(owner in str(told.value) for owner in OWN[name])


def test_the_strategies_named_are_there() -> None:
    assert {strategy for owners in OWN.values() for strategy in owners} <= set(STRATEGIES)


@pytest.mark.parametrize(("name", "value", "other"), [("momentum", 0.5, "optimizer"), ("top_k", 0.5, "compress")])
def test_an_option_of_another_rule_is_refused(name: str, value: float, other: str) -> None:
    with pytest.raises(UsageError, match=f"--{name.replace('_', '-')} 0.5 with --{other} "):
        replace(POINTS, **{name: value})
    assert replace(POINTS, **{name: value, other: {"optimizer": "sgd", "compress": "top-k"}[other]})


@pytest.mark.parametrize("name", ["clip", "weight_decay", "max_steps", "max_seconds", "patience", "reference_batch"])
@pytest.mark.parametrize("value", [-1, float("nan"), float("inf")])
def test_numbers_that_make_no_sense_are_refused(name: str, value: float) -> None:
    with pytest.raises(UsageError, match=name.replace("_", "-")):
        TrainSettings(**{name: value})  # type: ignore[arg-type]


def test_what_would_do_nothing_is_refused() -> None:
    with pytest.raises(UsageError, match="--patience"):
        TrainSettings(patience=2, keep="last")
    with pytest.raises(UsageError, match="--lr"):
        TrainSettings(lr=float("inf"))
