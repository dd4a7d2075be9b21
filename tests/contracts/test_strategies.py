"""One set of checks that every strategy passes, on the points task."""

from __future__ import annotations

import signal
import subprocess
import time
from pathlib import Path
from typing import Any

import psutil
import pytest
from helpers.mpi import needs_mpi, spawn_ranks
from helpers.processes import child_environment, python
from helpers.strategies import POINTS, SHORT
from helpers.training import events
from helpers.workers import spawn_workers

from tenor.training.tasks.spirals import bayes_accuracy
from tenor.training.traits import STRATEGIES

TOGETHER = [name for name in STRATEGIES if name != "single"]
SYNCHRONOUS = {"async in step": {"staleness": "0"}}
COMPRESSED = {  # variants of allreduce; error feedback suits plain SGD and is slower with Adam
    "top-k": {"compress": "top-k", "top_k": 0.1, "optimizer": "sgd", "lr": 0.2},
    "bf16": {"compress": "bf16"},
}
RANKS = {"hybrid": 4, "async": 3}  # others: 2
LOCK_FREE = ["hogwild", "async"]  # updates have no fixed order: after so few steps, accuracies repeat to 0.1
MARKS = {
    "hybrid": pytest.mark.soak,  # model-parallel is the same with one row
    "local-sgd": pytest.mark.soak,  # diloco is the same with an outer optimizer
    **dict.fromkeys(LOCK_FREE, pytest.mark.serial),
}
OVER_MPI = " over mpi"
MANY = " with 5 ranks"
TIMEOUT = 150
OUTCOMES = [
    *(pytest.param(name, marks=MARKS.get(name, ())) for name in TOGETHER),
    *(pytest.param(name, marks=pytest.mark.soak) for name in (*COMPRESSED, *SYNCHRONOUS)),
    *(  # the quick ones are test_mpirun in tests/training/launching, and one run in tests/faults/test_async.py
        pytest.param(f"{name}{OVER_MPI}{size}", marks=(needs_mpi, pytest.mark.soak))
        for name in ("async", "allreduce")
        for size in ("", MANY)
    ),
]


@pytest.fixture(scope="module", params=OUTCOMES)
def outcome(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """The results of two ranks; of four with `hybrid`, three with a server, and three or five over MPI."""
    folder = tmp_path_factory.mktemp(request.param.replace(" ", "-"))
    called = request.param.removesuffix(MANY).removesuffix(OVER_MPI)
    name, changes = called, {}
    if name in COMPRESSED:
        name, changes = "allreduce", COMPRESSED[name]
    elif name in SYNCHRONOUS:
        name, changes = "async", SYNCHRONOUS[name]
    call = {"strategy": name, "folder": str(folder), "changes": changes}
    if OVER_MPI in request.param:
        num_ranks = 5 if request.param.endswith(MANY) else 3
        ranks = spawn_ranks(num_ranks, "helpers.strategies:run_contract", TIMEOUT, **call)
    else:
        ranks = spawn_workers(RANKS.get(name, 2), "helpers.strategies:run_contract", TIMEOUT, **call)
    return {"strategy": called, "folder": folder, "ranks": ranks}


def same(outcome: dict[str, Any], one: dict[str, Any], other: dict[str, Any]) -> bool:
    if outcome["strategy"] in LOCK_FREE:
        return bool(abs(one["test"]["accuracy"] - other["test"]["accuracy"]) < 0.1)
    return bool(one["weights_sha256"] == other["weights_sha256"])


def test_accuracy_is_near_the_best_possible(outcome: dict[str, Any]) -> None:
    assert outcome["ranks"][0]["whole"]["test"]["accuracy"] > bayes_accuracy() - 0.025


def test_workers_end_with_equal_weights(outcome: dict[str, Any]) -> None:
    for run in ("whole", "first", "again", "resumed"):
        assert len({rank[run]["weights_sha256"] for rank in outcome["ranks"]}) == 1


def test_it_repeats(outcome: dict[str, Any]) -> None:
    first = outcome["ranks"][0]
    assert same(outcome, first["first"], first["again"])
    assert first["first"]["weights_sha256"] != first["whole"]["weights_sha256"]


def test_a_signal_to_one_stops_all_and_a_resumed_run_ends_the_same(outcome: dict[str, Any]) -> None:
    for rank in outcome["ranks"]:
        assert rank["stopped"] == signal.SIGTERM
        assert rank["resumed"]["steps"] == rank["first"]["steps"] == SHORT
        assert same(outcome, rank["resumed"], rank["first"])
    seen = events(outcome["folder"] / "stopped")
    assert [event["step"] for event in seen] == sorted({event["step"] for event in seen})


def test_every_sample_and_byte_is_accounted_for(outcome: dict[str, Any]) -> None:
    seen = events(outcome["folder"] / "whole")
    assert sum(event["samples"] for event in seen) == 30_000 * POINTS.epochs
    assert sum(sum(event["shares"]) for event in seen) == 30_000 * POINTS.epochs
    assert sum(event["bytes_sent"] for event in seen) == outcome["ranks"][0]["whole"]["bytes_sent"] > 0
    whole = outcome["ranks"][0]["whole"]
    assert sum(event["bytes_saved"] for event in seen) == whole["bytes_saved"]
    assert (whole["bytes_saved"] > whole["bytes_sent"] / 2) == (outcome["strategy"] in COMPRESSED)
    assert seen[-1]["step"] == outcome["ranks"][0]["whole"]["steps"]


def test_it_listens_on_loopback_at_most(outcome: dict[str, Any]) -> None:
    for rank in outcome["ranks"]:
        assert set(rank["listening"]) <= {"looked", "127.0.0.1", "::1"}
        assert "looked" in rank["listening"]


KILLED = [  # `async` replaces killed workers: tests/faults
    *("allreduce", "hogwild"),
    *(pytest.param(name, marks=pytest.mark.soak) for name in ("local-sgd", "diloco", "model-parallel", "hybrid")),
]


@pytest.mark.parametrize("strategy", KILLED)
def test_a_killed_worker_is_named_and_nothing_is_left(strategy: str, tmp_path: Path) -> None:
    run = tmp_path / "run"
    workers = str(RANKS.get(strategy, 2))
    options = ["--strategy", strategy, "--workers", workers, "--threads", "1", "--epochs", "200", "--batch-size", "256"]
    command = ["-m", "tenor", "train", "points", "--task", "points", "--out", str(run), *options]
    process = subprocess.Popen(python(*command), env=child_environment(), stderr=subprocess.PIPE)
    try:
        wait_for_steps(process, run)
        team = psutil.Process(process.pid).children()
        next(child for child in team if child.environ()["TENOR_RANK"] == "1").kill()
        _, stderr = process.communicate(timeout=30)
    finally:
        process.kill()
        process.communicate()
    assert process.returncode == 1
    assert "worker 1" in stderr.decode() and "SIGKILL" in stderr.decode()
    assert psutil.wait_procs(team, timeout=5)[1] == []


def wait_for_steps(process: subprocess.Popen[bytes], run: Path) -> None:
    until = time.monotonic() + 60
    while not (run / "metrics.jsonl").exists() or not (run / "metrics.jsonl").stat().st_size:
        assert process.poll() is None and time.monotonic() < until, "training did not begin"
        time.sleep(0.05)
