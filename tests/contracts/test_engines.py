"""One contract, three engines: order, errors, lost workers, the same bytes, nothing left behind."""

from __future__ import annotations

import importlib.util
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from contracts.engine_checks import check_engine
from helpers.corpora import make_reviews, write_json_lines
from helpers.processes import child_environment, python

from tenor.engines.choose import make_engine
from tenor.engines.settings import EngineSettings
from tenor.errors import UsageError, WorkerError


def _missing(engine: str) -> str:
    if engine == "dask" and not importlib.util.find_spec("distributed"):
        return "the extra dask is not installed"
    if engine == "spark" and not (importlib.util.find_spec("pyspark") and shutil.which("java")):
        return "the extra spark or Java is not installed"
    return ""


ENGINES = [
    pytest.param(name, marks=pytest.mark.skipif(bool(_missing(name)), reason=_missing(name)))
    for name in ("local", "dask", "spark")
]


@pytest.mark.parametrize("name", ENGINES)
def test_contract(name: str, tmp_path: Path) -> None:
    """Dask and Spark keep threads and warn about each other's versions: they get a process of their own."""
    if name == "local":
        check_engine(name, tmp_path)
        return
    _run("contracts.engine_checks", name, tmp_path)


def _run(module: str, *args: str | Path) -> None:
    environment = child_environment(PYTHONPATH=os.pathsep.join(sys.path))
    done = subprocess.run(
        python("-m", module, *map(str, args)), env=environment, capture_output=True, text=True, timeout=240, check=False
    )
    assert done.returncode == 0, done.stderr[-4000:]


@pytest.mark.skipif(bool(_missing("dask")), reason=_missing("dask"))
def test_dask_writes_its_report(tmp_path: Path) -> None:
    path = write_json_lines(tmp_path / "a.jsonl", make_reviews(50))
    options = ("--engine", "dask", "--workers", "1", "--dask-report", str(tmp_path / "report.html"))
    _run("tenor", "prepare", path, "--out", tmp_path / "out", *options)
    assert "Task Stream" in (tmp_path / "report.html").read_text("utf-8")


@pytest.mark.parametrize(
    "settings",
    [
        EngineSettings("local", cluster="tcp://127.0.0.1:1"),
        EngineSettings("local", dask_report="x.html"),
        EngineSettings("spark", tls_ca="x"),
    ],
)
def test_settings_that_do_not_fit(settings: EngineSettings) -> None:
    with pytest.raises(UsageError):
        make_engine(settings)


def test_a_task_that_always_kills_its_worker_is_given_up(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tenor.engines.local.MAX_ATTEMPTS", 3)
    engine = make_engine(EngineSettings("local", workers=2))
    tasks = [{"folder": str(tmp_path), "deaths": 1000, "value": n} for n in range(2)]
    try:
        with pytest.raises(WorkerError, match="died"):
            engine.run("contracts.stages:die_often", tasks, lambda result: None)
    finally:
        engine.close()
