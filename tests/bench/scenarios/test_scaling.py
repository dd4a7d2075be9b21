"""The scaling experiment: which points it has, speed-ups by hand, thresholds, tables, and a small real run."""

import dataclasses
import json
import math
from pathlib import Path
from typing import Any

import pytest
from helpers.command import run_tenor

from tenor.bench.results import refuse_other_machine
from tenor.bench.scaling_figures import add_scaling, join_bases
from tenor.bench.scaling_tables import SHARED, scaling_tables
from tenor.bench.scenarios import bench
from tenor.bench.scenarios.scaling.inputs import Inputs
from tenor.bench.scenarios.scaling.points import Point, choose_points
from tenor.bench.scenarios.scaling.work import Threshold, Work
from tenor.bench.settings import BenchSettings
from tenor.environment import usable_cores
from tenor.errors import UsageError


def names(cores: int = 2, **options: Any) -> list[str]:
    return [point.name for point in choose_points(BenchSettings(**options), cores)[0]]


def test_every_stage_has_a_base_and_strong_and_weak_points() -> None:
    assert names() == [
        "prepare-1",
        "prepare-strong-2",
        "prepare-weak-2",
        "train-1",
        "train-strong-2",
        "train-weak-2",
        "predict-1",
        "predict-strong-2",
        "predict-weak-2",
    ]
    assert names(stages="train", strategies="allreduce,async", workers="2,4", rows="train-async-strong-4") == [
        "train-async-strong-4"
    ]
    assert names(stages="train", until_loss=0.3, workers="1,2")[-1] == "train-until-2"


def test_points_with_more_processes_than_cores_are_marked() -> None:
    points, notes = choose_points(BenchSettings(stages="train", strategies="allreduce,async", workers="1,2"), 2)
    marked = {point.name: (point.processes, point.shares_cores) for point in points}
    assert marked["train-allreduce-strong-2"] == (2, False)
    assert marked["train-async-strong-2"] == (3, True)  # two workers and a server
    assert "not scaling" in notes[-1]


def test_points_that_cannot_run_are_left_out_and_named() -> None:
    points, notes = choose_points(BenchSettings(stages="train", strategies="hybrid,single", workers="1,2,4"), 8)
    assert [point.name for point in points] == ["train-hybrid-strong-4", "train-hybrid-weak-4", "train-single-1"]
    assert "hybrid with 2 workers" in " ".join(notes)
    with pytest.raises(UsageError, match="nothing to measure"):
        choose_points(BenchSettings(stages="train", strategies="hybrid", workers="1"), 8)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"stages": "cook"}, "stages has the unknown name 'cook'"),
        ({"strategies": "luck"}, "strategies has the unknown name"),
        ({"network": "1gbit,1ms"}, "network applies to training only"),
        ({"until_loss": 0.3}, "until-loss applies to training only"),
        ({"data": "x", "stages": "predict"}, "data applies to training only"),
        ({"stages": "train", "network": "1gbit,1ms", "workers": "1"}, "no effect with one worker"),
        ({"stages": "train", "network": "1gbit,1ms", "strategies": "hogwild"}, "hogwild shares memory"),
        ({"rows": "train-9"}, "unknown name 'train-9'"),
    ],
)
def test_options_that_contradict_each_other(options: dict[str, Any], message: str) -> None:
    with pytest.raises(UsageError, match=message.replace("-", ".")):
        choose_points(BenchSettings(**options), 2)


@pytest.mark.parametrize("wrong", [{"until_loss": -1.0}, {"until_accuracy": 2.0}, {"reviews": 0}, {"network": "x"}])
def test_wrong_options_are_refused(wrong: dict[str, Any]) -> None:
    with pytest.raises(UsageError, match="cannot be"):
        BenchSettings(**wrong)


def row(kind: str, workers: int, *rates: float, shared: bool = False, stage: str = "train") -> dict[str, Any]:
    spread = {"samples_per_s": {"min": min(rates), "max": max(rates), "values": list(rates)}}
    name = Point(stage, kind, "auto", workers, 99).name
    middle = sorted(rates)[len(rates) // 2]
    facts = {"name": name, "stage": stage, "kind": kind, "strategy": "auto", "workers": workers}
    return {**facts, "samples_per_s": middle, "spread": spread, "shares_cores": shared, "repeats": len(rates)}


def test_speed_up_and_efficiency_turn_by_turn() -> None:
    """The second turn was slow for everybody: turn by turn, the speed-up is 1.8 in both; of the medians, it is not."""
    rows = [
        row("base", 1, 100.0, 50.0, 80.0),
        row("strong", 2, 180.0, 90.0, 160.0),
        row("weak", 4, 300.0, 150.0, 240.0),
    ]
    add_scaling(rows)
    base, strong, weak = rows
    assert (base["speed_up"], base["efficiency"]) == (1.0, 1.0)
    assert strong["spread"]["speed_up"]["values"] == pytest.approx([1.8, 1.8, 2.0])
    assert (strong["speed_up"], strong["efficiency"]) == pytest.approx((1.8, 0.9))
    assert (weak["speed_up"], weak["efficiency"]) == pytest.approx((3.0, 0.75))


def test_the_base_may_have_several_workers_and_shared_cores_have_no_speed_up() -> None:
    rows = [row("base", 2, 100.0), row("strong", 6, 240.0), row("strong", 8, 900.0, shared=True), row("until", 2, 1.0)]
    add_scaling(rows)
    assert (rows[1]["speed_up"], rows[1]["efficiency"]) == pytest.approx((2.4, 0.8))
    assert "speed_up" not in rows[2] and "speed_up" not in rows[3]


def test_joined_results_have_one_base() -> None:
    first, second = [row("base", 1, 100.0)], [row("base", 4, 320.0), row("base", 1, 7.0, stage="predict")]
    rows = join_bases([*first, *second, row("base", 1, 55.0)])
    assert [(one["name"], one["kind"]) for one in rows] == [
        ("train-1", "base"),
        ("train-4", "strong"),
        ("predict-1", "base"),
    ]
    add_scaling(rows)
    assert rows[1]["speed_up"] == pytest.approx(3.2)
    with pytest.raises(UsageError, match=r"another machine \(Abacus, 2 cores"):
        machines = [{"machine": {"processor": name, "cores": 2}} for name in ("Abacus", "Slide rule")]
        refuse_other_machine(Path("b.json"), machines[0], "a.json", machines[1])


def test_thresholds_are_found_in_the_log() -> None:
    epochs = [
        {"epoch": n, "seconds": 10.0 * n, "train_loss": 0.6 / n, "valid": {"accuracy": 0.7 + 0.05 * n}}
        for n in (1, 2, 3)
    ]
    assert Threshold(loss=0.31).reached(epochs) == {"epochs_to_loss_0.31": 2.0, "seconds_to_loss_0.31": 20.0}
    both = Threshold(loss=0.6, accuracy=0.85).reached(epochs)
    assert (both["epochs_to_loss_0.6"], both["epochs_to_accuracy_0.85"]) == (1.0, 3.0)
    assert math.isinf(Threshold(accuracy=0.99).reached(epochs)["seconds_to_accuracy_0.99"])
    assert math.isinf(
        Threshold(loss=0.1).reached([{"epoch": 1, "seconds": 1.0, "train_loss": None, "valid": {}}])[
            "epochs_to_loss_0.1"
        ]
    )
    assert Threshold().reached(epochs) == {}


def test_tables_of_strong_weak_and_until() -> None:
    until = {**row("until", 2, 9.0), "epochs_to_loss_0.3": math.inf, "seconds_to_loss_0.3": 4.0, "valid_accuracy": 0.9}
    rows = [row("base", 1, 100.0), row("strong", 2, 150.0), row("weak", 2, 190.0, shared=True), until]
    add_scaling(rows)
    strong, weak, way = scaling_tables(rows)
    assert "strong scaling" in strong.title and [line["workers"] for line in strong.rows] == [1, 2]
    head, cells = strong.cells
    assert head[-1] == "efficiency" and weak.cells[0][-1] == "note"  # notes only where workers share cores
    assert cells[1][head.index("speed-up")] == "1.50" and cells[1][head.index("efficiency")] == "0.75"
    assert weak.cells[1][1][-1] == SHARED and weak.cells[1][1][3] == "–"
    assert way.cells[0][1:3] == ["epochs to loss 0.3", "seconds to loss 0.3"] and way.cells[1][0][1:3] == ["–", "4.0"]


@pytest.fixture
def quick(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Runs that take no time: N workers are 0.9 N times as fast as one; the names of the runs, as they happen."""
    log: list[str] = []

    def runner(self: Work, point: Point, first: int) -> Any:
        def run() -> dict[str, float]:
            log.append(f"{point.name}@{first}")
            self.curves |= {point.name: {"accuracy": [0.9], "seconds": [1.0]}} if point.kind == "until" else {}
            rate = 100.0 * point.workers * (0.9 if point.workers > 1 else 1.0)
            return {"samples_per_s": rate, **(self.threshold.reached([]) if point.kind == "until" else {})}

        return run

    monkeypatch.setattr(Work, "runner", runner)
    monkeypatch.setattr(Inputs, "make", lambda *_: None)
    return log


def test_the_whole_experiment_with_quick_runs(tmp_path: Path, quick: list[str]) -> None:
    journal = tmp_path / "journal"
    settings = BenchSettings(stages="train", workers="1,2,64", repeats=3, until_accuracy=0.5, journal=str(journal))
    result = bench("scaling", settings)
    found = {line["name"]: line for line in result.rows}
    assert len(quick) == 3 * len(found) == 24
    assert found["train-strong-64"]["shares_cores"] and "speed_up" not in found["train-strong-64"]
    assert (
        found["train-until-1"]["curve"]["accuracy"] == [0.9]
        and "validation accuracy of at least 0.5" in result.notes[-1]
    )
    if usable_cores() > 1:
        assert found["train-weak-2"]["efficiency"] == pytest.approx(0.9)
    assert len(journal.read_text("utf-8").splitlines()) == 25
    again = {line["name"]: line for line in bench("scaling", settings).rows}  # everything is in the journal
    assert len(quick) == 24
    assert again["train-until-2"]["curve"] == found["train-until-2"]["curve"] and "curve" not in again["train-1"]
    with pytest.raises(UsageError, match="repeats 3, not 4"):
        bench("scaling", dataclasses.replace(settings, repeats=4))


@pytest.mark.soak
@pytest.mark.serial
def test_a_small_experiment_in_a_real_process(tmp_path: Path) -> None:
    out = tmp_path / "scaling.json"
    words = ("--workers", "1,2", "--repeats", "1", "--reviews", "300", "--out", out, "--rows")
    run_tenor("bench", "scaling", *words, "predict-1,train-1,train-strong-2", timeout=200).ok()
    result = json.loads(out.read_text("utf-8"))
    assert (result["format"], result["scenario"]) == (1, "scaling") and "bench scaling" in result["command"]
    assert "commit" in result["environment"] and not out.with_suffix(".json.partial").exists()
    found = {line["name"]: line for line in result["rows"]}
    assert set(found) == {"predict-1", "train-1", "train-strong-2"}
    assert found["predict-1"]["startup_s"] > 0 and found["train-strong-2"]["bytes_per_step"] > 0
    assert "Train, strong scaling" in out.with_suffix(".html").read_text("utf-8")
