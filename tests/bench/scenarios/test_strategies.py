"""`tenor bench strategies`: every strategy in one table, with the figures of the course project."""

import math

import pytest

from tenor.bench.scenarios import bench, strategies
from tenor.bench.settings import BenchSettings
from tenor.errors import UsageError
from tenor.models.classifier import ReviewNetwork
from tenor.models.dense import DenseClassifier
from tenor.models.spec import DeepSpec, ModelSpec
from tenor.reports.report import render
from tenor.reports.result_file import parse_result
from tenor.reports.settings import ReportSettings
from tenor.training.settings import TrainSettings
from tenor.training.traits import STRATEGIES, TASKS, TaskTraits


def test_every_strategy_is_measured_where_it_fits() -> None:
    assert set(strategies.NAMES) - set(strategies.VARIANTS) == set(STRATEGIES)
    for options in strategies.VARIANTS.values():
        assert TrainSettings(**options) != TrainSettings(strategy=options["strategy"])
    pairs, notes = strategies.choose(BenchSettings(task="points", workers="2,3,8"))
    assert pairs[:4] == [("single", 1), ("allreduce", 2), ("allreduce", 3), ("allreduce", 8)]
    assert {count for name, count in pairs if name == "model-parallel"} == {2}
    assert {count for name, count in pairs if name == "hybrid"} == {8}
    assert "Skipped hybrid with 3 workers: it needs a multiple of 2 workers, at least 4." in notes and len(notes) == 4
    with pytest.raises(UsageError, match="rows has the unknown name"):
        strategies.choose(BenchSettings(rows="magic"))
    with pytest.raises(UsageError, match="nothing to measure"):
        strategies.choose(BenchSettings(rows="hybrid", workers="2"))


def test_the_models_have_the_stages_that_the_scenario_assumes() -> None:
    assert len(DenseClassifier(2, 8, 4).stages()) == TASKS["points"].num_stages
    assert len(ReviewNetwork(ModelSpec(deep=DeepSpec(vocab_size=10))).stages()) == TASKS["reviews"].num_stages


def test_a_new_task_needs_no_entry_here(monkeypatch: pytest.MonkeyPatch) -> None:
    for task in TASKS:
        assert strategies.training_settings(task).task == task
    monkeypatch.setitem(TASKS, "points", TaskTraits("nowhere:Task", num_stages=3))
    monkeypatch.setattr(strategies, "CHANGES", {})
    pairs, _ = strategies.choose(BenchSettings(task="points", rows="model-parallel", workers="2,3,4"))
    assert pairs == [("model-parallel", 2), ("model-parallel", 3)]


@pytest.mark.soak
def test_rows_have_speed_accuracy_bytes_and_a_curve() -> None:
    settings = BenchSettings(task="points", workers="2", repeats=1, warmups=0, rows="single,local-sgd", epochs=2)
    result = bench("strategies", settings)
    alone, two, *original = result.rows
    assert (alone["name"], alone["speed_up"], alone["efficiency"], alone["bytes_sent"]) == ("single-1", 1.0, 1.0, 0)
    assert two["points"] == pytest.approx(100 * (two["valid_accuracy"] - alone["valid_accuracy"]))
    assert two["bytes_sent"] > 0 and two["efficiency"] == pytest.approx(two["speed_up"] / 2)
    for row in (alone, two):
        for split in ("train", "valid", "test"):
            assert 0.5 < row[f"{split}_accuracy"] < 1.0 and 0 < row[f"{split}_loss"] < math.log(4)
        assert row["seconds"] >= row["curve"]["seconds"][1] > row["curve"]["seconds"][0] > 0
        assert row["curve"]["bytes"][1] == 2 * row["curve"]["bytes"][0] == row["bytes_sent"]
    assert [row["workers"] for row in original] == [1, 2, 4, 6, 8, 10, 16, 32]
    assert (original[4]["test_accuracy"], round(original[4]["speed_up"], 2)) == (0.523, 1.62)
    shown = render([parse_result(result.as_dict())], ReportSettings())
    assert "Against bytes" in shown and "local-sgd" in shown and "original-32" in shown
    assert shown.count("<svg") == 3
