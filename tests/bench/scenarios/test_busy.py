"""Scenario `busy`: its rows and figures, and a machine that is left as it was. Training and prediction are replaced."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import psutil
import pytest

from tenor.bench.scenarios import busy
from tenor.bench.settings import BenchSettings
from tenor.errors import UsageError
from tenor.progress import SILENT


def children() -> list[psutil.Process]:
    return psutil.Process().children(recursive=True)


def rate(quiet: float) -> Mapping[str, float]:
    """Return half the speed if another process runs, and a fifth more with long spinning."""
    spinning = 1.2 if os.environ.get("GOMP_SPINCOUNT") == "300000" else 1.0
    return {"reviews_per_s": quiet * spinning * (0.5 if children() else 1.0)}


@pytest.fixture
def made(monkeypatch: pytest.MonkeyPatch) -> list[Path]:
    """Replace the work by fakes; the list holds the data that was prepared."""
    found: list[Path] = []
    monkeypatch.delenv("GOMP_SPINCOUNT", raising=False)
    monkeypatch.setattr(busy, "generate", lambda raw, settings: None)
    monkeypatch.setattr(busy, "prepare", lambda raw, data: found.append(data))
    monkeypatch.setattr(busy, "train", lambda data, out, settings: None)
    monkeypatch.setattr(busy, "_train", lambda data, workers: rate(100.0 * workers))
    monkeypatch.setattr(busy, "_predict", lambda folder, raw, workers: rate(1000.0 * workers))
    return found


def measured(tmp_path: Path, **options: Any) -> dict[str, dict[str, Any]]:
    result = busy.run(BenchSettings(repeats=1, **options), tmp_path, SILENT)
    assert result.scenario == "busy"
    return {row["name"]: row for row in result.rows}


def test_each_task_is_measured_in_three_ways_with_each_number_of_workers(made: list[Path], tmp_path: Path) -> None:
    rows = measured(tmp_path, workers="1,2")
    assert list(rows) == [
        f"{task}-{workers}{way}"
        for workers in (1, 2)
        for task in ("train", "predict")
        for way in ("", "-busy", "-spinning")
    ]
    assert [row["workers"] for row in rows.values()] == [1] * 6 + [2] * 6
    ways = ["nothing", "a busy process", "nothing, long spinning"]
    assert [row["beside"] for row in rows.values()] == ways * 4
    assert len(made) == 1


def test_kept_is_relative_to_the_quiet_row_of_the_same_task_and_workers(made: list[Path], tmp_path: Path) -> None:
    rows = measured(tmp_path, workers="1,2")
    assert (rows["train-2"]["reviews_per_s"], rows["predict-1-busy"]["reviews_per_s"]) == (200.0, 500.0)
    for name, row in rows.items():
        kept = 0.5 if name.endswith("-busy") else 1.2 if name.endswith("-spinning") else 1.0
        assert row["kept"] == pytest.approx(kept), name


def test_rows_are_chosen_by_name(made: list[Path], tmp_path: Path) -> None:
    rows = measured(tmp_path, workers="2", rows="predict-2-busy,predict-2,train-2-busy")
    assert {name: row["kept"] for name, row in rows.items()} == {
        "predict-2-busy": 0.5,
        "predict-2": 1.0,
        "train-2-busy": None,  # its quiet row was not measured
    }


def test_an_unknown_row_is_refused_before_anything_is_made(made: list[Path], tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="train-4"):
        measured(tmp_path, workers="1,2", rows="train-4")
    assert made == []


def fail() -> Mapping[str, float]:
    assert len(children()) == 1 or os.environ["GOMP_SPINCOUNT"] == "300000"
    raise RuntimeError("broken work")


def test_the_busy_process_is_ended_after_the_work() -> None:
    def work() -> Mapping[str, float]:
        assert len(children()) == 1
        return {"reviews_per_s": 1.0}

    assert busy._beside_busy_process(work) == {"reviews_per_s": 1.0}
    assert children() == []


def test_the_busy_process_is_ended_if_the_work_fails() -> None:
    with pytest.raises(RuntimeError, match="broken work"):
        busy._beside_busy_process(fail)
    assert children() == []


def test_the_busy_process_ends_when_its_parent_is_gone() -> None:
    subprocess.run([sys.executable, "-c", busy.BURN, str(os.getpid() + 1)], timeout=30, check=True)


@pytest.mark.parametrize("before", [None, "7"])
@pytest.mark.parametrize("work", [lambda: {"reviews_per_s": 1.0}, fail], ids=["done", "failed"])
def test_the_way_threads_wait_is_restored(
    monkeypatch: pytest.MonkeyPatch, before: str | None, work: Callable[[], Mapping[str, float]]
) -> None:
    monkeypatch.delenv("GOMP_SPINCOUNT", raising=False)
    if before is not None:
        monkeypatch.setenv("GOMP_SPINCOUNT", before)
    if work is fail:
        with pytest.raises(RuntimeError, match="broken work"):
            busy._with_long_spinning(work)
    else:
        assert busy._with_long_spinning(work) == {"reviews_per_s": 1.0}
    assert os.environ.get("GOMP_SPINCOUNT") == before
