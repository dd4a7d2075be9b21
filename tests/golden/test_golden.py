"""No result has changed since the stored ones: shards, weights, predictions and the JSON of the commands."""

from __future__ import annotations

import json
import platform
import sys
from pathlib import Path
from typing import Any

import pytest
from golden.cases import TRAIN, Case
from golden.compute import ENVIRONMENT, EXPECTED, PARTS, differences, order, versions
from golden.team import describe_run
from helpers.command import run_tenor

OF_DEEP_PART = {"cell", "bidirectional", "embeddings", "hidden", "embedding_dim"}  # options that a wide model refuses
OF_DEEP_PART |= {"dropout", "input_dropout", "word_dropout"}
STORED: dict[str, Any] = json.loads(EXPECTED.read_text("utf-8"))
MOST_LINES = 40
HINT = "If results are meant to change, rewrite the stored ones: python tests/golden/record.py"


def _why_not() -> str:
    if sys.platform != "linux" or platform.machine() != "x86_64":
        return "results are stored for Linux on x86-64"
    lines = differences(STORED["versions"], versions(), "version")
    return f"results are stored for the versions in constraints.txt: {'; '.join(lines)}" if lines else ""


needs_same_libraries = pytest.mark.skipif(bool(_why_not()), reason=_why_not() or "results can be compared")


def compare(expected: Any, found: Any, name: str) -> None:
    """Fail with one line for each difference."""
    if lines := differences(expected, found, name):
        more = [f"… and {len(lines) - MOST_LINES} more"] if len(lines) > MOST_LINES else []
        pytest.fail("\n".join([f"differences: {len(lines)}", *lines[:MOST_LINES], *more, HINT]), pytrace=False)


def compare_part(part: str, found: dict[str, Any]) -> None:
    compare({name: value for name, value in STORED.items() if name.startswith(f"{part}: ")}, found, "results")


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("golden") / "work"


@pytest.fixture(scope="module")
def prepared(folder: Path) -> dict[str, Any]:
    return PARTS["prepare"](folder)


@needs_same_libraries
def test_prepared_files_are_the_same(prepared: dict[str, Any]) -> None:
    compare_part("prepare", prepared)


@needs_same_libraries
@pytest.mark.parametrize(
    "part", ["train", *(pytest.param(part, marks=pytest.mark.soak) for part in ("usual command", "slow command"))]
)
def test_results_are_the_same(prepared: dict[str, Any], folder: Path, part: str) -> None:
    compare_part(part, PARTS[part](folder))


@needs_same_libraries
@pytest.mark.soak
@pytest.mark.parametrize("case", TRAIN, ids=lambda case: case.name)
def test_the_command_trains_the_same_weights(
    prepared: dict[str, Any], folder: Path, case: Case, tmp_path: Path
) -> None:
    """With workers that the command starts; a run that was stopped equals one that was not."""
    unused = OF_DEEP_PART if case.settings.get("model") == "wide" else set()
    flags = {name: name.replace("_", "-") for name in case.settings if name not in unused}
    options = [
        f"--{'' if value else 'no-'}{flags[name]}" if isinstance(value, bool) else f"--{flags[name]}={value}"
        for name, value in case.settings.items()
        if name in flags
    ]
    command = ("train", case.source, "--out", tmp_path / "run", "--json", *options)
    result = run_tenor(*command, env=ENVIRONMENT, cwd=folder).ok().json
    name = f"train: {case.name}"
    compare(STORED[name], describe_run(case, tmp_path / "run", result), name)


def test_a_difference_is_named() -> None:
    expected = {"a": {"weights": "12", "loss": 0.5, "steps": 3, "gone": 1}, "b": [1, 2]}
    found = {"a": {"weights": "13", "loss": 0.5000001, "steps": 3.0, "new": 1}, "b": [1, 2, 3]}
    assert differences(expected, found, "x") == [
        "x › a: 'gone' is missing",
        "x › a: 'new' is new",
        "x › a › weights: was '12', is '13'",
        "x › a › steps: was 3, is 3.0",
        "x › b: was [1, 2], is [1, 2, 3]",
    ]
    assert differences(0.5, 0.50001, "x") == ["x: was 0.5, is 0.50001"]
    assert differences({"a": 1, "b": 2}, {"b": 2, "a": 1}, "x") == ["x: keys are in another order"]


def test_the_stored_file_is_as_recorded() -> None:
    assert order(STORED) == EXPECTED.read_text("utf-8")
