"""Stages for the engines' contract: each shows one thing that can happen to a task."""

from __future__ import annotations

import os
import signal
import time
from pathlib import Path
from typing import Any

from tenor.errors import CorpusError


def square(task: dict[str, Any]) -> dict[str, Any]:
    return {"square": task["value"] ** 2}


def refuse(task: dict[str, Any]) -> dict[str, Any]:
    raise CorpusError("is bad", where="file.csv", remedy="fix it")


def no_space(task: dict[str, Any]) -> dict[str, Any]:
    raise OSError(28, "No space left on device", "/somewhere")


def crash(task: dict[str, Any]) -> dict[str, Any]:
    raise ZeroDivisionError("a mistake in a stage")


def die_often(task: dict[str, Any]) -> dict[str, Any]:
    """Kill the worker that runs the task, `deaths` times in total, then return a result."""
    folder = Path(task["folder"])
    if len(list(folder.iterdir())) < task["deaths"]:
        (folder / str(len(list(folder.iterdir())))).touch()
        os.kill(os.getpid(), signal.SIGKILL)
    return {"value": task["value"]}


def linger(task: dict[str, Any]) -> dict[str, Any]:
    """Wait for the file `go`, at most half a minute, and then make the file `late`."""
    until = time.monotonic() + 30
    while not Path(task["go"]).exists() and time.monotonic() < until:
        time.sleep(0.05)
    Path(task["late"]).touch()
    return {"waited": time.monotonic() < until}


def refuse_or_linger(task: dict[str, Any]) -> dict[str, Any]:
    return refuse(task) if task["number"] == 0 else linger(task)
