"""Runs programs at the same time, with one thread each, and reads the JSON object that each prints last."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Sequence
from typing import Any

from tenor.errors import WorkerError

TIMEOUT = 1800.0


def run_together(module: str, jobs: Sequence[dict[str, Any]], timeout: float = TIMEOUT) -> list[dict[str, Any]]:
    """Run `python -m module JOB` for each job, all at the same time, and return their results.

    Raises:
        WorkerError: A program failed.
    """
    started = [_start(module, job) for job in jobs]
    try:
        return [_result(process, module, timeout) for process in started]
    finally:
        for process in started:
            process.kill()
            process.communicate()  # also closes the pipes


def _start(module: str, job: dict[str, Any]) -> subprocess.Popen[bytes]:
    environment = {**os.environ, "OMP_NUM_THREADS": "1", "PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
    command = [sys.executable, "-m", module, json.dumps(job)]
    return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=environment)


def _result(process: subprocess.Popen[bytes], module: str, timeout: float) -> dict[str, Any]:
    out, err = process.communicate(timeout=timeout)
    if process.returncode:
        lines = err.decode("utf-8", "replace").strip().splitlines()
        reason = lines[-1] if lines else "it printed no error"
        raise WorkerError(f"{module} failed (exit code {process.returncode}): {reason}")
    result: dict[str, Any] = json.loads(out.splitlines()[-1])
    return result
