"""Plots of runs: calibration from its bins, and timelines from the log and from a profile."""

from __future__ import annotations

import csv
import io
from typing import Any

import numpy as np
import pytest

from tenor.evaluation.calibration import expected_calibration_error, reliability
from tenor.evaluation.metrics import measure
from tenor.evaluation.scores import Scores
from tenor.reports.drawing.plot import Plot
from tenor.reports.plots.calibration import read_bins, reliability_curve, reliability_curves
from tenor.reports.plots.timeline import SHOWN_STEPS, logged_spans, step_parts, timeline
from tenor.reports.runs.data import RunData
from tenor.reports.runs.profile import Profile, TimelineSpan, WorkerParts

CLASSES = ("negative", "positive")


def table(plot: Plot | None) -> list[dict[str, str]]:
    assert plot is not None
    return list(csv.DictReader(io.StringIO(plot.csv)))


def metrics(seed: int) -> dict[str, Any]:
    rng = np.random.default_rng(seed)
    chances = rng.random(500)
    scores = Scores()
    scores.add(chances, (rng.random(500) < chances**2).astype(int))
    return measure(scores, CLASSES).as_dict()


def test_the_curve_shows_the_bins_and_the_error() -> None:
    found = metrics(1)
    plot = reliability_curve(found, CLASSES, "test")
    assert plot is not None and f"error {found['calibration_error']:.3f}" in plot.caption
    assert "predicted probability of positive" in plot.svg
    assert [float(line["share that came true"]) for line in table(plot)] == [b["share"] for b in found["reliability"]]
    both = reliability_curves({"a": found, "b": metrics(2)}, CLASSES, "test")
    assert both is not None and {line["run"] for line in table(both)} == {"a", "b"}
    assert reliability_curves({"a": found, "b": {}}, CLASSES, "test") is None


def test_bins_survive_the_file() -> None:
    chances, labels = np.array([0.1, 0.2, 0.9], np.float32), np.array([0, 1, 1])
    scores = Scores()
    scores.add(chances, labels)
    bins = read_bins(measure(scores, CLASSES).as_dict()["reliability"])
    assert bins == reliability(chances, labels)
    assert expected_calibration_error(bins) == pytest.approx((0.1 + 0.8 + 0.1) / 3, abs=1e-6)


GOOD = {"low": 0.0, "high": 0.1, "rows": 3, "probability": 0.05, "share": 0.5}


@pytest.mark.parametrize(
    "bins",
    [None, "x", 7, {}, [7], [None], [{}], [GOOD] * 151]
    + [[{**GOOD, key: odd}] for key in GOOD for odd in (None, "x", -1, 1e308 if key != "rows" else 0, True)],
)
def test_damaged_bins_are_not_drawn(bins: Any) -> None:
    assert read_bins([GOOD]) and read_bins(bins) == []
    assert reliability_curve({"reliability": bins}, CLASSES, "test") is None


def step(number: int, compute: list[float], wait: list[float]) -> dict[str, Any]:
    return {"step": number, "seconds": float(number), "compute_seconds": compute, "wait_seconds": wait}


def test_a_logged_step_computes_and_then_waits_as_the_next_event_says() -> None:
    steps = [step(n, [0.5, 0.8], [0.01 * n, 0.001 * n]) for n in range(1, 20)]
    spans = logged_spans(steps)
    assert len(spans) == SHOWN_STEPS * 2 * 2
    first, second = spans[:2]  # of the first worker in step 11, which begins at second 10
    assert first == TimelineSpan(0, "compute", 10.0, 10.5)
    assert (second.part, second.start, second.end) == ("wait", 10.5, pytest.approx(10.5 + 0.12))
    plot = timeline(RunData("run", {}, {}, {}, steps, []))
    assert plot is not None and "From the computing and waiting seconds of the log" in plot.caption


@pytest.mark.parametrize(
    "steps",
    [
        [],
        [step(1, [0.1], [0.1])] * 2,
        [step(n, [0.1], [0.1]) for n in range(9)],  # one worker
        [step(4 * n, [0.1, 0.1], [0.1, 0.1]) for n in range(9)],  # each event stands for four steps
        [step(n, [0.1] * (2 + n % 2), [0.1] * (2 + n % 2)) for n in range(9)],
        [{**step(n, [0.1, 0.1], [0.1, 0.1]), "step": None} for n in range(9)],
    ],
)
def test_without_such_a_log_there_is_no_timeline(steps: list[dict[str, Any]]) -> None:
    assert timeline(RunData("run", {}, {}, {}, steps, [])) is None


def test_a_profile_is_drawn_instead_of_the_log() -> None:
    workers = [WorkerParts("worker 0", {"load": 0.001, "other": 0.003}), WorkerParts("worker 1", {"load": 0.004})]
    profile = Profile(11, 20, workers, [TimelineSpan(1, "load", 5.0, 5.5), TimelineSpan(0, "wait", 5.0, 5.0)])
    plot = timeline(RunData("run", {}, {}, {}, [], [], profile=profile))
    assert [line["worker"] for line in table(plot)] == ["worker 1"]  # a span without length is not drawn
    parts = step_parts(profile)
    assert parts is not None and parts.caption == "Load 62.5%, other 37.5%. Mean of steps 11 to 20."
