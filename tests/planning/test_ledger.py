"""The ledger: predictions find the runs that they are about, and only if they were made before."""

import json
import os
from pathlib import Path
from typing import Any

import pytest
from helpers.planned import FIXED, PER_TOKEN, UPDATE, write_measured_run

from tenor.errors import UsageError
from tenor.planning.answers import plan_measurement, read_source
from tenor.planning.ledger import keep_predictions, ledger_file, score
from tenor.planning.settings import PlanSettings

LATER = "2099-01-01T00:00:00Z"


def predict(folder: Path, **options: Any) -> None:
    settings = PlanSettings(**options)
    measured = read_source(folder / "source", settings)
    file = ledger_file(measured.source, settings)
    assert file == folder / "predictions.jsonl"
    keep_predictions(file, measured, settings, plan_measurement(measured, settings).rows)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    write_measured_run(tmp_path / "source")
    return tmp_path


def test_a_prediction_beside_what_was_measured(folder: Path) -> None:
    predict(folder, workers="1,2")
    write_measured_run(folder / "two", 2, date=LATER)
    write_measured_run(folder / "three", 3, date=LATER)  # nobody predicted it
    (found,) = score(folder)
    assert (found.run, found.workers, found.strategy) == ("two", 2, "allreduce")
    lines = [json.loads(line) for line in (folder / "two" / "metrics.jsonl").read_text("utf-8").splitlines()]
    tokens = [line["tokens"] for line in lines if line["event"] == "step"][12:-1]
    measured = FIXED + PER_TOKEN * sum(tokens) / len(tokens) / 2 + 0.003 + UPDATE
    assert found.measured == pytest.approx(measured) and found.measured_bytes == 800_000
    assert found.predicted == pytest.approx(measured, rel=0.25) and found.low < found.predicted < found.high
    assert found.error == pytest.approx(found.predicted / found.measured - 1)
    assert found.as_dict()["inside"] == (found.low <= measured <= found.high)


def test_the_run_itself_and_earlier_runs_were_not_predicted(folder: Path) -> None:
    write_measured_run(folder / "early", 2, date="2000-01-01T00:00:00Z")
    predict(folder, workers="1,2")
    assert score(folder) == []


def test_the_latest_prediction_counts(folder: Path) -> None:
    predict(folder, workers="2")
    lines = (folder / "predictions.jsonl").read_text("utf-8")
    older = json.loads(lines)
    older["step_seconds"] = 9.0
    (folder / "predictions.jsonl").write_text(json.dumps(older) + "\n" + lines, "utf-8")
    write_measured_run(folder / "two", 2, date=LATER)
    assert score(folder)[0].predicted < 1.0
    assert score(folder / "two")[0].run == "two"  # the ledger beside one run


@pytest.mark.parametrize(
    "other",
    [{"batch_size": 128}, {"hidden": 32}, {"strategy": "local-sgd"}, {"slowdown": "1:2"}, {"balance": "epoch"}],
)
def test_other_settings_are_other_runs(folder: Path, other: dict[str, Any]) -> None:
    predict(folder, workers="2")
    write_measured_run(folder / "two", 2, date=LATER, **other)
    assert score(folder) == []


def test_sums_over_a_tree_are_not_those_of_a_run_over_a_ring(folder: Path) -> None:
    predict(folder, workers="2", spread=True, sums="tree")
    (line,) = (folder / "predictions.jsonl").read_text("utf-8").splitlines()
    assert json.loads(line)["about"]["sums"] == "tree"
    predict(folder, workers="2", sums="tree")  # within one machine there is no tree
    assert "sums" not in json.loads((folder / "predictions.jsonl").read_text("utf-8").splitlines()[1])["about"]


def test_mixes_and_local_steps_are_recognised(folder: Path) -> None:
    predict(folder, workers="2", mix="1:3", balance=True)
    predict(folder, workers="2", strategy="local-sgd", sync_every=4)
    write_measured_run(folder / "mix", 2, date=LATER, slowdown="1:3", balance="steps:3")
    write_measured_run(folder / "local", 2, date=LATER, strategy="local-sgd", sync_every=4)
    write_measured_run(folder / "rarely", 2, date=LATER, strategy="local-sgd", sync_every=8)
    assert [one.run for one in score(folder)] == ["local", "mix"]


def test_a_longer_run_scales_the_prediction_by_its_tokens(folder: Path) -> None:
    predict(folder, workers="1")
    run = write_measured_run(folder / "again", date=LATER)
    (plain,) = score(folder)
    lines = [json.loads(line) for line in (run / "metrics.jsonl").read_text("utf-8").splitlines()]
    for line in lines:
        line["tokens"] = 2 * line.get("tokens", 0)
    (run / "metrics.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines), "utf-8")
    (long,) = score(folder)
    assert plain.predicted < long.predicted < 2 * plain.predicted  # the fixed cost does not grow


@pytest.mark.parametrize("line", ["{}", "x", '{"format": 2}', "[]", '{"format": 1, "about": {}, "date": 3}'])
def test_a_damaged_ledger_is_refused_with_its_line(folder: Path, line: str) -> None:
    predict(folder, workers="2")
    with (folder / "predictions.jsonl").open("a") as file:
        file.write(line + "\n")
    with pytest.raises(UsageError, match="line 2 is not a prediction"):
        score(folder)


def test_without_a_ledger(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="no ledger of predictions"):
        score(tmp_path)
    assert ledger_file("somewhere/run", PlanSettings(ledger="own.jsonl")) == Path("own.jsonl")


@pytest.mark.parametrize("kind", ["link", "dangling", "pipe"])
def test_predictions_are_not_written_into_another_file(folder: Path, kind: str) -> None:
    victim, ledger = folder / "victim", folder / "predictions.jsonl"
    if kind == "link":
        victim.write_text("precious", "utf-8")
    if kind == "pipe":
        os.mkfifo(ledger)
    else:
        ledger.symlink_to(victim)
    with pytest.raises(OSError):
        predict(folder, workers="1")
    assert victim.read_text("utf-8") == "precious" if kind == "link" else not victim.exists()


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("step_seconds", "1"),
        ("tokens", float("inf")),
        ("low", float("nan")),
        ("high", 10**400),
        ("by_tokens", 1e9),
        ("bytes_per_step", True),
        ("about", []),
        ("date", None),
    ],
)
def test_a_line_with_an_odd_value_is_named(folder: Path, name: str, value: Any) -> None:
    predict(folder, workers="2")
    record = json.loads((folder / "predictions.jsonl").read_text("utf-8"))
    (folder / "predictions.jsonl").write_text(json.dumps({**record, name: value}) + "\n", "utf-8")
    write_measured_run(folder / "two", 2, date=LATER)
    with pytest.raises(UsageError, match="line 1 is not a prediction"):
        score(folder)


def test_a_damaged_run_is_left_out_of_the_scores(folder: Path) -> None:
    predict(folder, workers="2")
    write_measured_run(folder / "two", 2, date=LATER)
    for number, values in enumerate(([], {"sizes": []}, {"sizes": {"processes": 1e400}})):
        write_measured_run(folder / f"odd-{number}", 2, date=LATER)
        (folder / f"odd-{number}" / "environment.json").write_text(json.dumps(values), "utf-8")
    assert [found.run for found in score(folder)] == ["two"]
