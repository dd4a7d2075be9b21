"""Start real worker processes with a time limit, and report which worker failed and how."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import tempfile
import time
from pathlib import Path
from typing import Any

from helpers.processes import child_environment, describe_exit, kill_group, last_lines, python


class WorkerFailure(AssertionError):
    """A worker died, hung or left processes behind; the message names the worker and shows its last lines."""


def spawn_workers(
    num_workers: int, target: str, timeout: float = 60.0, *, env: dict[str, str] | None = None, **arguments: Any
) -> list[Any]:
    """Call `target` with `arguments` (JSON values) in `num_workers` processes; return the values in order of rank.

    `target` is "package.module:function" or f"{__file__}:function". The environment of each worker holds RANK,
    WORLD_SIZE, LOCAL_RANK and LOCAL_WORLD_SIZE. When one worker fails, all workers are killed.
    """
    with tempfile.TemporaryDirectory(prefix="workers-") as folder:
        call = (target, json.dumps(arguments))
        team = [_Worker(rank, num_workers, call, Path(folder), env or {}) for rank in range(num_workers)]
        try:
            _wait(team, timeout)
        finally:
            orphaned = [worker.rank for worker in team if worker.kill()]
        if orphaned:
            raise WorkerFailure(f"worker {orphaned[0]} of {num_workers} left processes behind")
        return [worker.result() for worker in team]


class _Worker:
    def __init__(self, rank: int, size: int, call: tuple[str, str], folder: Path, env: dict[str, str]) -> None:
        self.rank, self.size = rank, size
        self._result = folder / f"{rank}.json"
        self._errors = folder / f"{rank}.stderr"
        place = {"RANK": rank, "WORLD_SIZE": size, "LOCAL_RANK": rank, "LOCAL_WORLD_SIZE": size}
        environment = child_environment(**{name: str(value) for name, value in place.items()}, **env)
        command = python("-W", "error", "-m", "helpers.worker_main", *call, str(self._result))
        with self._errors.open("wb") as errors:
            self.process = subprocess.Popen(
                command, env=environment, stdout=errors, stderr=errors, stdin=subprocess.DEVNULL, start_new_session=True
            )

    def failure(self, how: str) -> WorkerFailure:
        return WorkerFailure(f"worker {self.rank} of {self.size} {how}; its last lines:\n{last_lines(self._errors)}")

    def kill(self) -> bool:
        return kill_group(self.process)

    def result(self) -> Any:
        return json.loads(self._result.read_text("utf-8"))


def _wait(team: list[_Worker], timeout: float) -> None:
    until = time.monotonic() + timeout
    while any(worker.process.poll() is None for worker in team):
        _raise_first_death(team)
        if time.monotonic() > until:
            _raise_hang(team, timeout)
        time.sleep(0.01)
    _raise_first_death(team)


def _raise_first_death(team: list[_Worker]) -> None:
    dead = [worker for worker in team if worker.process.poll()]
    # If several workers are dead, one that died by a signal is the likelier cause: its peers fail because it is gone.
    for worker in sorted(dead, key=lambda worker: worker.process.returncode > 0):
        raise worker.failure(describe_exit(worker.process.returncode))


def _raise_hang(team: list[_Worker], timeout: float) -> None:
    hung = [worker for worker in team if worker.process.poll() is None]
    for worker in hung:  # worker_main then prints the stacks of all its threads
        with contextlib.suppress(ProcessLookupError):
            os.kill(worker.process.pid, signal.SIGUSR1)
    time.sleep(0.3)
    ranks = ", ".join(str(worker.rank) for worker in hung)
    raise hung[0].failure(f"was still running after {timeout:g} s (hung: {ranks})")
