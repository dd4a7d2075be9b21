"""Seeds of more than 64 bits, and model sizes beyond the limits for loading a run, are usage errors."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from helpers.command import run_tenor

from tenor import TrainSettings
from tenor.corpus.synthetic.settings import GenerateSettings
from tenor.errors import UsageError
from tenor.preparation.settings import PrepareSettings
from tenor.training.recipe import complete
from tenor.training.tasks.points import Points


@pytest.mark.parametrize(
    ("make", "values"),
    [
        (TrainSettings, {"seed": 1 << 64}),
        (TrainSettings, {"seed": 1 << 63}),
        (TrainSettings, {"seed": -1}),
        (TrainSettings, {"hidden": 1_000_000}),
        (TrainSettings, {"embedding_dim": 1_000_000}),
        (TrainSettings, {"layers": 20_000}),
        (GenerateSettings, {"seed": 1 << 64}),
        (GenerateSettings, {"seed": -1}),
        (GenerateSettings, {"length": float("nan")}),
        (PrepareSettings, {"split_seed": 1 << 64}),
    ],
)
def test_the_option_and_its_value_are_named(make: Callable[..., Any], values: dict[str, Any]) -> None:
    [(name, value)] = values.items()
    with pytest.raises(UsageError, match=f"{name} cannot be {value}"):
        make(**values)


def test_the_largest_seed_works() -> None:
    assert len(Points(complete(TrainSettings(task="points", seed=(1 << 63) - 1), None)).order.batch(0, 0)) > 0


def test_generate_says_so_in_one_line() -> None:
    assert "--seed cannot be" in run_tenor("generate", "out", "--seed", str(1 << 64)).failed(2)
