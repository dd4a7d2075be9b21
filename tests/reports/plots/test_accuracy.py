"""Accuracy against seconds of training: the front by hand, the numbers of the plot, and odd values."""

from __future__ import annotations

import csv
import io
from typing import Any

import pytest

from tenor.reports.plots.accuracy import Method, accuracy_against_seconds, not_beaten
from tenor.reports.registry import draw_result
from tenor.reports.result_file import ResultData
from tenor.reports.settings import ReportSettings

ROWS: list[dict[str, Any]] = [
    {"name": "majority", "seconds": 0.0, "accuracy": 0.5},
    {
        "name": "default",
        "seconds": 60.0,
        "accuracy": 0.93,
        "mean_accuracy": 0.925,
        "spread": {"accuracy": {"min": 0.91, "max": 0.935}},
    },
    {"name": "slow", "seconds": 90.0, "accuracy": 0.9},
    {"name": "fast", "seconds": 3.0, "accuracy": 0.91},
]


def test_the_front_by_hand() -> None:
    points = {"a": (1, 0.8), "b": (2, 0.7), "c": (3, 0.9), "d": (3, 0.85), "e": (4, 0.9)}
    methods = [Method(name, seconds, value, value, value) for name, (seconds, value) in points.items()]
    assert [method.name for method in not_beaten(methods)] == ["a", "c"]


def test_the_plot_has_means_ranges_and_the_front() -> None:
    plot = accuracy_against_seconds(ROWS)
    assert plot is not None
    rows = {row["name"]: row for row in csv.DictReader(io.StringIO(plot.csv))}
    assert [rows["default"][key] for key in ("seconds", "accuracy", "low", "high")] == [
        "60.0",
        "0.925",
        "0.91",
        "0.935",
    ]
    assert {name for name, row in rows.items() if row["Pareto front"] == "True"} == {"majority", "fast", "default"}
    assert "fast (3 s, 0.9100), default (60 s, 0.9250)" in plot.caption


def test_the_page_of_the_scenario_has_the_plot() -> None:
    found = draw_result(ResultData("accuracy", ROWS), ReportSettings())
    titles = [plot.title for plot in found if plot is not None]
    assert titles == ["Accuracy against seconds of training", "Accuracy by row"]


@pytest.mark.parametrize("seconds", [None, "3", -1.0, 1e300, True])
def test_odd_values_are_left_out(seconds: Any) -> None:
    assert accuracy_against_seconds([{"name": "a", "seconds": seconds, "accuracy": 0.5}]) is None
    assert accuracy_against_seconds([{"name": "a$", "seconds": 1.0, "accuracy": 0.5, "spread": {"accuracy": 3}}])
