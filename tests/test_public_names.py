"""The names users rely on: pinned here, so that one is added or lost only on purpose."""

import dataclasses
import importlib
import inspect
import re
from typing import Any

import api_reference
import pytest

import tenor

PUBLIC = [
    "Behaviour",
    "Drift",
    "DriftSettings",
    "EmbedResult",
    "EmbedSettings",
    "EvaluateSettings",
    "Evaluation",
    "ExplainedPiece",
    "ExportResult",
    "GenerateResult",
    "GenerateSettings",
    "Insights",
    "InsightsSettings",
    "Metrics",
    "PassCount",
    "PredictSettings",
    "Prediction",
    "PrepareResult",
    "PrepareSettings",
    "ReportSettings",
    "RunComparison",
    "RunSummary",
    "RunsSettings",
    "SentimentModel",
    "TenorError",
    "TextNgrams",
    "TextScores",
    "TrainResult",
    "TrainSettings",
    "Vectors",
    "__version__",
    "check_behaviour",
    "compare_runs",
    "embed",
    "evaluate",
    "find_insights",
    "export_model",
    "generate",
    "list_runs",
    "load",
    "load_vectors",
    "measure_drift",
    "neighbours",
    "predict",
    "prepare",
    "report",
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


CLASSES = [name for name in PUBLIC if inspect.isclass(getattr(tenor, name))]
METHODS = [(kind, method) for kind in CLASSES for method, _ in api_reference.public_methods(getattr(tenor, kind))]
FUNCTIONS = [(name,) for name in PUBLIC if inspect.isfunction(getattr(tenor, name))]


def find(path: tuple[str, ...]) -> Any:
    value: Any = tenor
    for name in path:
        value = getattr(value, name)
    return value


@pytest.mark.parametrize("path", [*FUNCTIONS, *METHODS], ids=".".join)
def test_every_public_function_documents_its_parameters_and_has_an_example(path: tuple[str, ...]) -> None:
    function = find(path)
    words = inspect.getdoc(function) or ""
    signature = inspect.signature(function)
    named = re.findall(r"^ {4}(\w+): ", words.partition("Args:\n")[2].partition("\n\n")[0], re.MULTILINE)
    assert named == [name for name in signature.parameters if name != "self"]
    assert re.search(r"^(Returns?|Yields)\b", words, re.MULTILINE), "the docstring does not say what is returned"
    assert ">>> " in words


@pytest.mark.parametrize("name", CLASSES)
def test_every_public_class_documents_its_attributes(name: str) -> None:
    kind = getattr(tenor, name)
    if name.endswith("Settings"):
        assert all(field.metadata["help"] for field in dataclasses.fields(kind)) and ">>> " in (kind.__doc__ or "")
    elif dataclasses.is_dataclass(kind):
        assert list(api_reference.attribute_meanings(kind)) == [field.name for field in dataclasses.fields(kind)]


def test_every_home_is_public() -> None:
    assert set(tenor._HOMES) == set(PUBLIC) - {"__version__"}


def test_an_unknown_name_is_an_attribute_error() -> None:
    with pytest.raises(AttributeError, match="nonsense"):
        _ = tenor.nonsense
