"""The names users rely on: pinned here, so that one is added or lost only on purpose."""

import importlib
import inspect

import pytest

import tenor

PUBLIC = [
    "EvaluateSettings",
    "GenerateResult",
    "GenerateSettings",
    "Metrics",
    "PredictSettings",
    "Prediction",
    "PrepareResult",
    "PrepareSettings",
    "SentimentModel",
    "TenorError",
    "TrainResult",
    "TrainSettings",
    "__version__",
    "evaluate",
    "generate",
    "load",
    "predict",
    "prepare",
    "train",
]


def test_the_public_names_are_these() -> None:
    assert sorted(tenor.__all__) == sorted(PUBLIC)
    assert dir(tenor) == sorted(PUBLIC)


@pytest.mark.parametrize("name", [name for name in PUBLIC if name != "__version__"])
def test_each_name_resolves_and_explains_itself(name: str) -> None:
    value = getattr(tenor, name)
    assert inspect.getdoc(value), f"tenor.{name} has no docstring"
    assert getattr(importlib.import_module(tenor._HOMES[name]), name) is value


def test_every_home_is_public() -> None:
    assert set(tenor._HOMES) == set(PUBLIC) - {"__version__"}


def test_an_unknown_name_is_an_attribute_error() -> None:
    with pytest.raises(AttributeError, match="nonsense"):
        _ = tenor.nonsense
