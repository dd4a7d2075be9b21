"""The plot of the workers shows what the run logged, and survives damaged runs."""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tenor.reports.plots import workers
from tenor.reports.runs.data import RunData


def make_run(steps: list[dict[str, Any]]) -> RunData:
    return RunData("run", {}, {}, {}, steps, [])


def step(number: int, shares: list[int], slowness: tuple[float, ...] = (1.0, 3.0)) -> dict[str, Any]:
    compute = [rows * slow * 1e-3 for rows, slow in zip(shares, slowness, strict=True)]
    waits = [max(compute) - own for own in compute]
    return {"event": "step", "step": number, "shares": shares, "compute_seconds": compute, "wait_seconds": waits}


def test_the_caption_says_how_the_shares_changed_and_the_legend_names_every_worker() -> None:
    plot = workers.over_steps(make_run([step(n, [128, 128] if n < 10 else [192, 64]) for n in range(1, 40)]))
    assert plot is not None
    assert (
        plot.caption
        == "Shares of the samples in the first and the last step: worker 0 from 50% to 75%, worker 1 from 50% to 25%."
    )
    assert "worker 0" in plot.svg and "worker 1" in plot.svg and "Waiting time per step (s)" in plot.svg


def test_seconds_are_drawn_at_the_step_they_belong_to() -> None:
    own = [step(n, [128, 128] if n < 10 else [190, 66]) for n in range(1, 20)]
    logged = [{**own[0], "wait_seconds": [0.0, 0.0]}]  # workers report waiting one step late
    logged += [{**now, "wait_seconds": before["wait_seconds"]} for before, now in pairwise(own)]
    columns = workers._columns(logged)
    np.testing.assert_array_equal(columns["shares"][0], range(1, 20))
    for name, expected in (("compute_seconds", own[1:]), ("wait_seconds", own[:-1])):
        np.testing.assert_array_equal(columns[name][0], [event["step"] for event in expected])
        np.testing.assert_allclose(columns[name][1], [event[name] for event in expected])


def test_the_unknown_waiting_time_after_a_start_is_not_drawn() -> None:
    logged = [{**step(n, [128, 128]), **({"wait_seconds": [0.0, 0.0]} if n in (1, 8) else {})} for n in range(1, 15)]
    steps, seconds = workers._columns(logged)["wait_seconds"]
    np.testing.assert_array_equal(steps, [n for n in range(1, 14) if n != 7])
    np.testing.assert_allclose(seconds, [[0.256, 0.0]] * 12)


def test_steps_with_a_different_number_of_workers_are_ignored() -> None:
    sizes = [2] * 4 + [3] * 50 + [2] * 4
    logged = [step(n, [64] * size, (1.0,) * size) for n, size in enumerate(sizes, 1)]
    steps, seconds = workers._columns(logged)["compute_seconds"]
    np.testing.assert_array_equal(steps, [2, 3, 4, 55, 56, 57, 58])
    np.testing.assert_allclose(seconds, 0.064)


def test_seconds_of_many_steps_are_their_mean() -> None:
    events = [{**step(n, [64, 64]), "compute_seconds": [0.8, 1.6]} for n in (8, 16, 24)]
    events.append({**step(25, [8, 8]), "compute_seconds": [0.1, 0.2]})  # the last of an epoch
    steps, seconds = workers._columns(events)["compute_seconds"]
    np.testing.assert_array_equal(steps, [16, 24, 25])
    np.testing.assert_allclose(seconds, [[0.1, 0.2]] * 3)


def test_workers_without_rows_are_not_in_the_caption() -> None:
    plot = workers.over_steps(make_run([step(n, [64, 0, 64, 0], (1, 1, 1, 1)) for n in range(1, 9)]))
    assert plot is not None
    assert plot.caption.endswith("the first and the last step: worker 0 from 50% to 50%, worker 2 from 50% to 50%.")
    assert "worker 3" in plot.svg  # it computes


def test_the_drawing_stays_small_with_many_steps_and_workers() -> None:
    slowness = tuple(np.linspace(1, 3, 64))
    plot = workers.over_steps(make_run([step(n, [4] * 64, slowness) for n in range(1, 3000)]))
    assert plot is not None and len(plot.svg) < 1_500_000
    assert "64 workers" in plot.caption


def test_means_keep_the_sum() -> None:
    values = np.random.default_rng(0).random((1000, 3))
    means = workers._means(values)
    assert len(means) == 150
    np.testing.assert_allclose(means.mean(axis=0), values.mean(axis=0), rtol=0.01)


DAMAGED: list[list[dict[str, Any]]] = [
    [],
    [{"step": 1}],
    [step(n, [9], (1.0,)) for n in range(5)],
    [{**step(n, [1, 2]), "shares": "x"} for n in range(1, 5)],
    [{**step(n, [1, 2]), "wait_seconds": [None, 1]} for n in range(1, 5)],
    [{**step(n, [1, 2]), "compute_seconds": [0.1]} for n in range(1, 5)],
]


@pytest.mark.parametrize("steps", DAMAGED)
def test_without_valid_steps_there_is_no_plot(steps: list[dict[str, Any]]) -> None:
    assert workers.over_steps(make_run(steps)) is None


def test_a_restart_with_fewer_workers_shows_the_last_ones(tmp_path: Path) -> None:
    before = [step(n, [10, 10, 10], (1, 1, 1)) for n in range(1, 5)]
    plot = workers.over_steps(make_run(before + [step(n, [15, 15], (1, 1)) for n in range(5, 9)]))
    assert plot is not None and "worker 2" not in plot.svg
