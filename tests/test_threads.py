"""Compute threads wait without spinning for long, in every process that tenor starts; users can choose otherwise."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
from helpers.processes import child_environment

from tenor import threads
from tenor.threads import (
    BUSY_SPIN_COUNT,
    SPIN_COUNT,
    describe_team,
    idle_cores,
    limit_spinning,
    waiting_variables,
)
from tenor.training.launching.worker_processes import WorkerProcesses


def test_spinning_is_limited_unless_the_user_has_chosen() -> None:
    assert waiting_variables({"HOME": "/"}) == {"GOMP_SPINCOUNT": str(SPIN_COUNT)}
    for name in ("OMP_WAIT_POLICY", "GOMP_SPINCOUNT", "KMP_BLOCKTIME"):
        assert waiting_variables({name: "1"}) == {}


def test_spinning_is_shorter_on_a_busy_machine_unless_the_user_has_chosen(monkeypatch: pytest.MonkeyPatch) -> None:
    assert waiting_variables({}, is_busy=True) == {"GOMP_SPINCOUNT": str(BUSY_SPIN_COUNT)}
    assert waiting_variables({"GOMP_SPINCOUNT": str(SPIN_COUNT)}, is_busy=True) == {}
    for name in ("GOMP_SPINCOUNT", "OMP_WAIT_POLICY", "KMP_BLOCKTIME"):
        monkeypatch.setenv(name, "")  # so that the variable is put back afterwards
        monkeypatch.delenv(name)
    monkeypatch.setattr(threads, "_set_here", [])
    limit_spinning()  # as the command line does before it starts workers
    assert os.environ["GOMP_SPINCOUNT"] == str(SPIN_COUNT)
    assert waiting_variables(os.environ, is_busy=True) == {"GOMP_SPINCOUNT": str(BUSY_SPIN_COUNT)}


@pytest.mark.parametrize(
    ("threads_each", "idle", "expected"), [(2, 1.0, BUSY_SPIN_COUNT), (2, 3.9, SPIN_COUNT), (1, 0.0, SPIN_COUNT)]
)
def test_workers_look_whether_the_machine_is_busy(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, threads_each: int, idle: float, expected: int
) -> None:
    for name in ("GOMP_SPINCOUNT", "OMP_WAIT_POLICY", "KMP_BLOCKTIME"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr(threads, "idle_cores", lambda seconds: idle)
    started = []

    class Team(WorkerProcesses):
        def _start(self, rank: int) -> subprocess.Popen[bytes]:
            started.append(self._environment(rank)["GOMP_SPINCOUNT"])
            return subprocess.Popen([sys.executable, "-c", ""])

    with Team(tmp_path, 2, threads_each, 10.0):
        pass
    assert started == [str(expected)] * 2


def test_idle_cores_are_counted_among_those_that_may_be_used(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    stat = tmp_path / "stat"
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: {0, 1}, raising=False)
    lines = ["cpu 9 9 9 9 9 9 9 9 0 0", "cpu0 100 0 0 100 0 0 0 0 0 0", "cpu1 100 0 0 100 0 0 0 0 0 0"]
    stat.write_text("\n".join([*lines, "cpu2 0 0 0 100 0 0 0 0 0 0", "ctxt 5"]))
    later = ["cpu0 110 0 0 100 0 0 0 0 0 0", "cpu1 100 0 1 104 3 0 0 2 0 0", "cpu2 0 0 0 110 0 0 0 0 0 0"]
    monkeypatch.setattr("time.sleep", lambda _: stat.write_text("\n".join(later)))
    assert idle_cores(0.1, stat) == pytest.approx(0.7)  # none of core 0, seven ticks of ten of core 1
    assert idle_cores(0.1, tmp_path / "none") == float("inf")


@pytest.mark.parametrize("command", ["from tenor.threads import limit_spinning; limit_spinning()", "pass"])
def test_the_library_that_waits_reads_the_limit(command: str) -> None:
    """What OpenMP itself reports when torch loads it; without the call it keeps a larger limit of its own."""
    told = _openmp_settings(f"{command}; import torch")
    assert (told == SPIN_COUNT) is ("limit" in command)


def test_the_command_line_limits_spinning() -> None:
    argv = "import sys; sys.argv = ['tenor', '--version']"
    code = f"{argv}\nfrom tenor.cli import main\ntry:\n    main()\nexcept SystemExit:\n    import torch"
    assert _openmp_settings(code) == SPIN_COUNT


def _openmp_settings(code: str) -> int:
    environment = child_environment(OMP_DISPLAY_ENV="verbose")
    for name in ("OMP_WAIT_POLICY", "GOMP_SPINCOUNT"):
        environment.pop(name, None)
    ran = subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True, text=True, check=True)
    found = re.search(r"GOMP_SPINCOUNT = '(\d+)'", ran.stderr)
    if found is None:
        pytest.skip("this torch does not use GNU OpenMP")
    return int(found[1])


def test_teams_in_words() -> None:
    assert describe_team(1, 2) == "1 worker with 2 threads"
    assert describe_team(2, 1) == "2 workers with 1 thread each"
