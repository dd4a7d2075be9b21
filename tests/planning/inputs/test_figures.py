"""Figures that a stranger may have written: refused in one line, wherever they stand, and never computed with."""

from __future__ import annotations

import json
import os
import tracemalloc
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from helpers.planned import measurement, write_measured_run

from tenor.errors import RunError, TenorError, UsageError
from tenor.planning.answers import plan_measurement, plan_runs, read_source
from tenor.planning.inputs import run_folder
from tenor.planning.inputs.data_folder import read_prepare_rate
from tenor.planning.inputs.measurement import read_measurement, write_measurement
from tenor.planning.inputs.run_folder import measure_run
from tenor.planning.inputs.runs_table import MOST_RUNS
from tenor.planning.settings import PlanSettings

Change = Callable[[dict[str, Any]], None]


def put(value: Any, *path: Any) -> Change:
    """A change of one value of a JSON tree."""

    def change(tree: dict[str, Any]) -> None:
        for key in path[:-1]:
            tree = tree[key]
        tree[path[-1]] = value

    return change


@pytest.mark.parametrize(
    "change",
    [
        put(10**18, "workers"),
        put(10**7, "cores"),
        put(1e300, "tokens"),
        put(-1, "model", "dense_bytes"),
        put(0, "model", "tables", "words", "rows"),
        put(-5, "model", "tables", "words", "touched"),
        put(0.0, "costs", "compute", "slope"),
        put(1e200, "costs", "compute", "error"),
        put([5e-324], "costs", "noise"),
        put(0, "costs", "exchange_workers"),
        put({"value": -1.0, "low": 0.0, "high": 1.0, "steps": 3}, "noise_scale"),
        put([{"samples": 9, "accuracy": 0.5}, {"samples": 9, "accuracy": 0.6}], "curve"),
        put([{"samples": 9, "accuracy": 5.0}], "curve"),
        put([1, 2], "environment", "machine"),
        put({"groups": [], "whole": {"reviews": 1, "mean_tokens": 1.0, "spectra": {}}}, "frequencies"),
    ],
)
def test_a_measurement_with_figures_that_cannot_be(tmp_path: Path, change: Change) -> None:
    write_measurement(measurement(), file := tmp_path / "measurement.json")
    plan_measurement(read_measurement(file), PlanSettings())  # the unchanged one is accepted
    values = json.loads(file.read_bytes())
    if values["measurement"]["costs"]["compute"]["fixed"]:
        values["measurement"]["costs"]["compute"]["fixed"] = 0.0
    change(values["measurement"])
    file.write_text(json.dumps(values), "utf-8")
    with pytest.raises(UsageError, match="not a result of Tenor"):
        read_measurement(file)


@pytest.mark.parametrize(
    ("name", "change"),
    [
        ("environment.json", put([], "machine")),
        ("environment.json", put("many", "threads")),
        ("environment.json", put(10**12, "threads")),
        ("environment.json", put([], "sizes")),
        ("environment.json", put({"deep.embedding": 5}, "sizes", "tables")),
        ("config.json", put("telepathy", "settings", "strategy")),
        ("config.json", put(10**18, "settings", "batch_size")),
        ("config.json", put({}, "settings", "epochs")),
        ("metrics.jsonl", put([[1], 2], "compute_seconds")),
        ("metrics.jsonl", put(7, "step")),
        ("metrics.jsonl", put("x", "gradient_norm")),
    ],
)
def test_a_run_with_figures_that_cannot_be(tmp_path: Path, name: str, change: Change) -> None:
    file = write_measured_run(tmp_path / "run", 2) / name
    lines = file.read_bytes().splitlines() if name == "metrics.jsonl" else [file.read_bytes()]
    values = [json.loads(line) for line in lines]
    for value in values:
        change(value)
    file.write_text("".join(json.dumps(value) + "\n" for value in values), "utf-8")
    with pytest.raises(TenorError) as refused:
        plan_measurement(read_source(tmp_path / "run", PlanSettings()), PlanSettings())
    assert "\n" not in str(refused.value)


def test_a_log_without_an_end_of_line_takes_little_memory(tmp_path: Path) -> None:
    run = write_measured_run(tmp_path / "run")
    with (run / "metrics.jsonl").open("wb") as file:
        file.truncate(64 << 30)  # a sparse file of 64 GiB, one line
    with pytest.MonkeyPatch.context() as patch, pytest.raises(RunError, match="0 steps"):
        patch.setattr(run_folder, "MAX_LINES", 20)
        read_source(run, PlanSettings())


def test_a_long_log_takes_no_more_memory_than_a_limit(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Costs follow from the first steps; the accuracy still belongs to the samples of all steps."""
    run, steps = write_measured_run(tmp_path / "run", steps=8000), 8000
    whole = measure_run(run)
    monkeypatch.setattr(run_folder, "KEPT_BYTES", 1 << 19)
    tracemalloc.start()
    try:
        found = measure_run(run)
        assert tracemalloc.get_traced_memory()[1] < 8 << 20
    finally:
        tracemalloc.stop()
    assert 500 < found.costs.steps < 3000 < whole.costs.steps
    assert found.costs.compute.slope == pytest.approx(whole.costs.compute.slope, rel=0.01)
    assert [point.samples for point in found.curve] == [point.samples for point in whole.curve] == [64 * steps]


def test_what_prepared_data_says_of_its_speed(tmp_path: Path) -> None:
    job = tmp_path / "job.json"
    job.write_text('{"bytes": 10, "seconds": 2.0, "workers": 1}', "utf-8")
    assert read_prepare_rate(tmp_path) == 5.0
    stages = '{"bytes": 10, "seconds": 9.0, "workers": 1, "stages": %s}'
    job.write_text(stages % '{"reading": 1.5, "writing shards": 1}', "utf-8")
    assert read_prepare_rate(tmp_path) == 4.0  # without the time to start
    for odd in ("3", '{"reading": []}', '{"reading": "x"}', "null"):
        job.write_text(stages % odd, "utf-8")
        assert read_prepare_rate(tmp_path) is None
    for text in ("[" * 5000 + "]" * 5000, '{"bytes": %s, "seconds": 1, "workers": 1}' % ("9" * 400), '{"bytes": -1}'):
        job.write_text(text, "utf-8")
        assert read_prepare_rate(tmp_path) is None
    job.unlink()
    os.mkfifo(job)
    assert read_prepare_rate(tmp_path) is None
    job.unlink()
    job.symlink_to("/dev/zero")
    assert read_prepare_rate(tmp_path) is None


@pytest.mark.parametrize("seconds", ["1e-300", "1e300", "nan", "-1", "9" * 5000])
def test_a_table_of_odd_runs(tmp_path: Path, seconds: str) -> None:
    (file := tmp_path / "runs.csv").write_text(f"machine,count,seconds\np2.xlarge,1,{seconds}\np2.xlarge,2,9\n")
    with pytest.raises(UsageError, match="seconds is"):
        plan_runs(file, PlanSettings(), (1, 64))


def test_a_table_of_very_many_runs(tmp_path: Path) -> None:
    (file := tmp_path / "runs.csv").write_text("machine,count,seconds\n" + "p2.xlarge,1,9\n" * (MOST_RUNS + 1))
    with pytest.raises(UsageError, match="more than 2,000 runs"):
        plan_runs(file, PlanSettings(), ())


def test_names_with_control_characters_are_refused(tmp_path: Path) -> None:
    (file := tmp_path / "runs.csv").write_text("machine,count,seconds\n\x1b[31m,1,9\n")
    with pytest.raises(UsageError, match="machine is"):
        plan_runs(file, PlanSettings(), ())
    (prices := tmp_path / "prices.toml").write_text('["\\u001b[31m"]\ndollars_per_hour = 1\n')
    with pytest.raises(UsageError, match="cannot be the name of a machine"):
        plan_measurement(measurement(), PlanSettings(prices=str(prices)))
