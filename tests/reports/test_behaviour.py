"""The report shows the behaviour tests of a run, and refuses a damaged file with one line."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from helpers.runs import write_run

import tenor
from tenor.errors import RunError
from tenor.reports.runs.behaviour import read_behaviour

FAILED = {
    "kind": "contrast",
    "type": "direction",
    "expected": "up",
    "texts": ["It is <b>slow</b>.", "It is slow, but lovely."],
    "labels": ["negative", "negative"],
    "probabilities": [0.2, 0.125],
}
VALUES = {
    "format": 1,
    "kinds": {
        "contrast": {"passed": 32, "cases": 33, "hard": False},
        "very short": {"passed": 30, "cases": 30, "hard": False},
        "sarcasm": {"passed": 5, "cases": 24, "hard": True},
    },
    "failed": [FAILED],
}


@pytest.fixture
def run(tmp_path: Path) -> Path:
    return store(write_run(tmp_path / "run", epochs=2, steps=4), VALUES)


def store(run: Path, values: Any) -> Path:
    (run / "behaviour.json").write_text(json.dumps(values), "utf-8")
    return run


def test_one_run(run: Path) -> None:
    text = tenor.report(run, run / "report.html").read_text("utf-8")
    assert "Behaviour tests by kind" in text and "Behaviour tests that fail (1)" in text
    assert "contrast 32 of 33, very short 30 of 30, sarcasm 5 of 24" in text
    assert "Without the hard kinds (sarcasm, pale): 62 of 63." in text
    assert '<td class="number">97.0</td>' in text and '<td class="number">98.4</td>' in text  # contrast, total
    assert "It is &lt;b&gt;slow&lt;/b&gt;. → It is slow, but lovely." in text
    assert "negative (0.20), negative (0.12)" in text


def test_two_runs_side_by_side(run: Path, tmp_path: Path) -> None:
    kinds = {"contrast": {"passed": 11, "cases": 33, "hard": False}}
    other = store(write_run(tmp_path / "other", epochs=2, steps=4), {"format": 1, "kinds": kinds, "failed": []})
    text = tenor.report([run, other], tmp_path / "report.html").read_text("utf-8")
    cells = '<tr><th scope="row">contrast</th><td class="number">97.0</td><td class="number">33.3</td></tr>'
    assert cells in text
    assert '<tr><th scope="row">sarcasm</th><td class="number">20.8</td><td class="number">–</td></tr>' in text


def test_a_run_without_behaviour_tests_has_no_such_card(tmp_path: Path) -> None:
    run = write_run(tmp_path / "run", epochs=2, steps=4)
    assert "Behaviour tests" not in tenor.report(run, run / "report.html").read_text("utf-8")


@pytest.mark.parametrize(
    "values",
    [
        {"format": 2, "kinds": {}, "failed": []},
        {"kinds": {}, "failed": []},
        {"format": 1, "kinds": []},
        {"format": 1, "kinds": {"a": {"passed": 3, "cases": 2, "hard": False}}, "failed": []},
        {"format": 1, "kinds": {"a": {"passed": 0, "cases": 0, "hard": False}}, "failed": []},
        {"format": 1, "kinds": {"a": {"passed": 1.5, "cases": 2, "hard": False}}, "failed": []},
        {"format": 1, "kinds": {"a": 3}, "failed": []},
        {"format": 1, "kinds": {}, "failed": [{**FAILED, "probabilities": [0.2]}]},
        {"format": 1, "kinds": {}, "failed": [{**FAILED, "probabilities": [0.2, 7]}]},
        {"format": 1, "kinds": {}, "failed": [{**FAILED, "texts": [1, 2]}]},
        {"format": 1, "kinds": {}, "failed": 3},
    ],
)
def test_a_damaged_file_is_refused_with_its_name(run: Path, values: Any) -> None:
    with pytest.raises(RunError, match=r"behaviour\.json: (has format|is not a result)"):
        read_behaviour(store(run, values))
