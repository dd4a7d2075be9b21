"""A run folder as a measurement: known costs are found again, and odd folders get one line."""

import json
from pathlib import Path
from typing import Any

import pytest
from helpers.planned import FIXED, PER_TOKEN, ROWS, UPDATE, write_measured_run

from tenor.errors import RunError, TenorError
from tenor.planning.inputs.run_folder import measure_run, measure_step


def change(folder: Path, name: str, edit: Any) -> None:
    values = json.loads((folder / name).read_text("utf-8"))
    edit(values)
    (folder / name).write_text(json.dumps(values), "utf-8")


def change_steps(folder: Path, edit: Any) -> None:
    lines = [json.loads(line) for line in (folder / "metrics.jsonl").read_text("utf-8").splitlines()]
    for line in lines:
        if line["event"] == "step":
            edit(line)
    (folder / "metrics.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines), "utf-8")


@pytest.mark.parametrize("workers", [1, 2])
def test_known_costs_are_found_again(tmp_path: Path, workers: int) -> None:
    found = measure_run(write_measured_run(tmp_path / "run", workers))
    assert (found.costs.compute.fixed, found.costs.compute.slope) == pytest.approx((FIXED, PER_TOKEN), rel=1e-6)
    assert found.costs.update.at(5000) == pytest.approx(UPDATE, rel=1e-6)
    assert found.costs.load.at(5000) == pytest.approx(0.0005)
    assert found.costs.exchange_s == (None if workers == 1 else pytest.approx(0.003))
    assert found.costs.load_is_hidden == (workers == 1)
    assert (found.workers, found.strategy) == (workers, "single" if workers == 1 else "allreduce")
    assert {name: table.touched for name, table in found.model.tables.items()} == ROWS
    assert (found.reviews, found.epochs, found.curve[-1].samples) == (64 * 120, 1, 64 * 120)
    assert (found.noise_scale is not None) == (workers > 1)


def test_lines_that_stand_for_several_steps_are_divided(tmp_path: Path) -> None:
    run = write_measured_run(tmp_path / "run", 2, steps=600, strategy="local-sgd")
    lines = [json.loads(line) for line in (run / "metrics.jsonl").read_text("utf-8").splitlines()]
    steps, merged = [line for line in lines if line["event"] == "step"], []
    for first, second in zip(steps[::2], steps[1::2], strict=True):
        both = {**second, **{name: first[name] + second[name] for name in ("samples", "tokens", "load_seconds")}}
        for name in ("compute_seconds", "padded_tokens", "shares"):
            both[name] = [a + b for a, b in zip(first[name], second[name], strict=True)]
        both["wait_seconds"] = [0.006, 0.006]
        both["rows"] = {name: 2 * rows for name, rows in ROWS.items()}
        merged.append({key: value for key, value in both.items() if "norm" not in key})
    (run / "metrics.jsonl").write_text("".join(json.dumps(line) + "\n" for line in merged), "utf-8")
    found = measure_run(run)
    assert (found.costs.compute.fixed, found.costs.compute.slope) == pytest.approx((FIXED, PER_TOKEN), rel=1e-5)
    assert found.costs.update.at(5000) == pytest.approx(UPDATE, rel=1e-3)
    assert found.model.tables["wide.ngrams"].touched == 9000 and found.costs.steps == found.costs.steps // 2 * 2


def test_the_mean_step_of_any_run(tmp_path: Path) -> None:
    step = measure_step(write_measured_run(tmp_path / "run", 2))
    assert step is not None
    assert step.seconds == pytest.approx(FIXED + PER_TOKEN * step.tokens / 2 + 0.003 + UPDATE)
    assert step.bytes_sent == 800_000 and step.steps == 120 - 13
    assert measure_step(write_measured_run(tmp_path / "short", steps=2)) is None


def test_runs_that_cannot_be_planned_from_are_refused(tmp_path: Path) -> None:
    def refused(name: str, **settings: Any) -> str:
        with pytest.raises(RunError) as error:
            measure_run(write_measured_run(tmp_path / name, 2, **settings))
        return str(error.value)

    served = refused("async", strategy="async")
    assert "strategy async" in served and "strategy single or allreduce" in served and "then predicts async" in served
    for strategy in ("model-parallel", "hybrid"):
        divided = refused(strategy, strategy=strategy)
        assert f"strategy {strategy}" in divided and "single or allreduce" in divided
        assert f"no plan predicts {strategy}" in divided
    assert "slowdown 1:3" in refused("slow", slowdown="1:3")
    with_gpu = write_measured_run(tmp_path / "gpu")
    change(with_gpu, "environment.json", lambda values: values.update(device="cuda"))
    with pytest.raises(RunError, match=r"was trained on GPUs.*table of finished runs"):
        measure_run(with_gpu)
    with pytest.raises(RunError, match="only 8 steps"):
        measure_run(write_measured_run(tmp_path / "short", steps=10))
    old = write_measured_run(tmp_path / "old")
    change(old, "environment.json", lambda values: values.pop("sizes"))
    with pytest.raises(RunError, match="older version"):
        measure_run(old)
    bare = write_measured_run(tmp_path / "bare")
    change_steps(bare, lambda line: line.pop("padded_tokens"))
    with pytest.raises(RunError, match="padded_tokens"):
        measure_run(bare)


@pytest.mark.parametrize("odd", [None, "x", [], {}, -1, 1e400, True])
@pytest.mark.parametrize("name", ["seconds", "tokens", "compute_seconds", "padded_tokens", "rows", "wait_seconds"])
def test_odd_steps_are_refused_or_used_but_never_crash(tmp_path: Path, name: str, odd: Any) -> None:
    run = write_measured_run(tmp_path / "run")
    change_steps(run, lambda line: line.update({name: odd}))
    try:
        found = measure_run(run)
    except TenorError as error:
        assert "\n" not in str(error)
    else:
        assert found.costs.steps > 0


def test_a_folder_without_a_run_and_a_cut_log(tmp_path: Path) -> None:
    with pytest.raises(RunError, match="not a run folder"):
        measure_run(tmp_path)
    run = write_measured_run(tmp_path / "run")
    with (run / "metrics.jsonl").open("a") as file:
        file.write('{"event": "step", "epo')
    assert measure_run(run).costs.steps > 0
    (run / "metrics.jsonl").unlink()
    with pytest.raises(RunError, match=r"no metrics.jsonl"):
        measure_run(run)
