"""Several runs on one page: figures, settings that differ, paired tests, and no speed-up between machines."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from helpers.runs import store_scores, write_run

import tenor
from tenor.reports.report import MOST_SOURCES
from tenor.reports.runs.data import RunData
from tenor.reports.sections.side_by_side import _goals, named_runs


def change(run: Path, file: str, **values: Any) -> None:
    path = run / file
    path.write_text(json.dumps({**json.loads(path.read_text("utf-8")), **values}), "utf-8")


@pytest.fixture
def runs(tmp_path: Path) -> list[Path]:
    """The same settings with 1, 2 and 4 workers."""
    made = []
    for workers in (1, 2, 4):
        run = write_run(
            tmp_path / f"w{workers}", epochs=3, steps=6, workers=workers, settings={"workers": str(workers)}
        )
        change(run, "result.json", samples_per_s=1000.0 * workers**0.5, seconds=100.0 / workers)
        made.append(run)
    return made


def page(runs: list[Path], **settings: Any) -> str:
    return tenor.report(runs, runs[0].parent / "p.html", tenor.ReportSettings(**settings)).read_text("utf-8")


def test_runs_that_differ_in_workers_get_speed_up_and_convergence(runs: list[Path]) -> None:
    text = page(runs)
    assert "3 runs side by side" in text and "Learning curves over epochs" in text
    assert "1,000 samples/s with 1 worker; 1,414 with 2 (1.41× the first, 71% of ideal)" in text
    assert "training rows" in text and "25,000" in text and "seconds of word vectors" in text
    assert "Epochs until a validation accuracy of" in text and "Calibration on the test split" in text
    assert "Confusion matrices on the test split" in text and "Accuracy against dollars" not in text


def test_a_price_shows_accuracy_against_dollars(runs: list[Path]) -> None:
    accuracy = json.loads((runs[0] / "result.json").read_text("utf-8"))["test"]["accuracy"]
    text = page(runs, price=36.0)  # 1 cent per second: 100 s with 1 worker, 50 s with 2, 25 s with 4
    assert f"w1, 1 worker (1.00 dollars, accuracy {accuracy:.4g})" in text
    with pytest.raises(tenor.TenorError, match="price cannot be"):
        tenor.ReportSettings(price=-1.0)


def test_no_speed_up_between_machines_or_between_different_settings(runs: list[Path]) -> None:
    change(runs[2], "environment.json", machine={"processor": "another", "cores": 64})
    text = page(runs)
    assert "different machines" in text and "Speed-up" not in text and "speed-up and efficiency" not in text
    shutil.copy(runs[0] / "environment.json", runs[2])
    assert "speed-up and efficiency" in page(runs)
    change(runs[2], "config.json", settings={"workers": "4", "cell": "gru"})
    text = page(runs)
    assert "speed-up and efficiency" not in text and "Settings that differ" in text


def test_pairs_are_tested_and_flips_are_shown(runs: list[Path]) -> None:
    labels = np.array([1] * 30 + [0] * 30)
    for run, wrong in zip(runs, (0, 12, 1), strict=True):
        chances = np.where(labels == 1, 0.8, 0.2)
        chances[:wrong] = 0.3
        store_scores(run, chances, labels)
    text = page(runs)
    assert "Row by row against “w1”" in text and "Judged differently by “w1” and “w2”" in text
    assert "−20.00 (−30.12 to −9.88)" in text  # 12 of 60 rows, ± 1.96 √(12 − 144/60) / 60
    assert text.count("may be chance") == 1
    change(runs[0], "config.json", data_sha256="other")
    assert "the runs were trained on different data" in page(runs)


def test_runs_of_the_same_name_and_other_classes(tmp_path: Path) -> None:
    one = write_run(tmp_path / "x" / "run", epochs=1, steps=2)
    two = write_run(tmp_path / "y" / "run", epochs=1, steps=2, classes=("a", "b", "c"))
    text = page([one, two])
    assert "run (2)" in text and "Confusion" not in text
    named = named_runs(
        [RunData("run", {}, {}, {}, [], []), *(RunData(n, {}, {}, {}, [], []) for n in ("run (2)", "run"))]
    )
    assert list(named) == ["run", "run (2)", "run (3)"]


def test_the_goal_is_what_all_runs_reach() -> None:
    curves = [
        {"seconds": [1.0, 2.0, 3.0], "accuracy": [0.5, 0.7, 0.9]},
        {"seconds": [2.0, 4.0], "accuracy": [0.7, 0.6]},
    ]
    rows = [{"workers": float(n), "curve": curve} for n, curve in enumerate(curves, 1)]
    assert _goals(rows) == [
        {
            "workers": 1.0,
            "epochs_to_a_validation_accuracy_of_0.700": 2,
            "seconds_to_a_validation_accuracy_of_0.700": 2.0,
        },
        {
            "workers": 2.0,
            "epochs_to_a_validation_accuracy_of_0.700": 1,
            "seconds_to_a_validation_accuracy_of_0.700": 2.0,
        },
    ]
    assert _goals([*rows, {"workers": 3.0, "curve": None}]) == []


@pytest.mark.parametrize("odd", [None, "x", [], {}, True, 1e308, "<b>"], ids=str)
def test_odd_values(runs: list[Path], odd: Any) -> None:
    change(runs[1], "result.json", test=odd, valid=odd, workers=odd, seconds=odd, samples_per_s=odd)
    change(runs[1], "environment.json", machine=odd)
    change(runs[1], "config.json", settings={"workers": odd, "<b>": odd}, classes=odd)
    text = page(runs, price=1.0)
    assert "<b>" not in text and text.count("<script") == 1


def test_sources_are_counted_and_a_source_given_twice_is_shown_once(runs: list[Path]) -> None:
    assert "side by side" not in page([runs[0], runs[0]])
    for sources in ([], [Path(f"run-{number}") for number in range(MOST_SOURCES + 1)]):
        with pytest.raises(tenor.TenorError, match="cannot report on"):
            tenor.report(sources)


def test_where_the_page_goes(runs: list[Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    assert tenor.report(runs[0]) == runs[0] / "report.html"
    assert tenor.report(runs[:2]) == Path("report.html")
    (tmp_path / "bench.json").write_text('{"scenario": "x", "rows": [{"name": "a", "seconds": 1.0}]}')
    assert tenor.report(tmp_path / "bench.json") == tmp_path / "bench.html"
