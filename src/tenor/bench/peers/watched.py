"""Run a program to its end and watch how much memory it and the processes it starts take together."""

from __future__ import annotations

import contextlib
import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from tenor.errors import WorkerError

LOOK_SECONDS = 0.1  # between two looks at the memory
PROCESSES = Path("/proc")  # Linux only
KINDS = ("RssAnon", "RssFile", "RssShmem")  # of memory


def run_watched(module: str, *words: str) -> dict[str, Any]:
    """Run a Python module that prints a JSON object.

    Returns:
        The object and, on Linux, `memory_mb`: the most memory that all processes of the program had together at two
        looks in a row. Memory that processes share counts once.

    Raises:
        WorkerError: The program failed.
    """
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
    with tempfile.TemporaryFile() as said, tempfile.TemporaryFile() as errors:
        command = [sys.executable, "-m", module, *words]
        process = subprocess.Popen(command, env=environment, stdin=subprocess.DEVNULL, stdout=said, stderr=errors)
        most, before = 0, 0
        try:
            while process.poll() is None:
                now = memory_of(process.pid)
                most, before = max(most, min(before, now)), now  # while a process is started, it may count twice
                time.sleep(LOOK_SECONDS)
        finally:
            process.kill()
            process.wait()
        said.seek(0)
        errors.seek(0)
        if process.returncode:
            lines = errors.read().decode("utf-8", "replace").strip().splitlines()
            reason = lines[-1] if lines else "it printed no error"
            raise WorkerError(f"{module} failed (exit code {process.returncode}): {reason}")
        told: dict[str, Any] = json.loads(said.read().splitlines()[-1])
    return {**told, "memory_mb": most / 1e6} if most else told


def memory_of(process: int) -> int:
    """The bytes of a process and of those that it started; 0 if they are unknown.

    Files and shared memory count once, with the process that has most of them. The kernel could also tell each page's
    share (`smaps_rollup`), but walks all pages to do so, in the time of the program that is measured.
    """
    every = _family(process)
    own, files, shared = zip(*every, strict=True) if every else ([0], [0], [0])
    return sum(own) + max(files) + max(shared)


def _family(process: int) -> list[tuple[int, int, int]]:
    """The bytes of a process and of each that it started: its own, those of files, and shared ones."""
    found = []
    with contextlib.suppress(OSError, KeyError):  # the process has ended, or this is not Linux
        folder = PROCESSES / str(process)
        values = dict(line.split(":", 1) for line in (folder / "status").read_text("utf-8", "replace").splitlines())
        own, files, shared = (1024 * int(values[name].split()[0]) for name in KINDS)
        found.append((own, files, shared))
        for thread in (folder / "task").iterdir():
            for child in (thread / "children").read_text("utf-8").split():
                found += _family(int(child))
    return found
