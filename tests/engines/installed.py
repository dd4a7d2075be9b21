"""Which engines can run here, and how a test runs a module in a process of its own."""

from __future__ import annotations

import importlib.util
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from helpers.processes import child_environment, python


def _missing(engine: str) -> str:
    if engine == "dask" and not all(importlib.util.find_spec(name) for name in ("distributed", "cryptography")):
        return "the extra dask is not installed"
    if engine == "spark" and not (importlib.util.find_spec("pyspark") and shutil.which("java")):
        return "the extra spark or Java is not installed"
    return ""


def needs(engine: str) -> pytest.MarkDecorator:
    """Skips a test where the engine cannot run."""
    return pytest.mark.skipif(bool(_missing(engine)), reason=_missing(engine))


def run_module(module: str, *args: str | Path) -> None:
    """Run a module in a process of its own, and fail if it fails.

    Dask and Spark keep threads, and warn about versions of each other.
    """
    environment = child_environment(PYTHONPATH=os.pathsep.join(sys.path))
    done = subprocess.run(
        python("-m", module, *map(str, args)), env=environment, capture_output=True, text=True, timeout=240, check=False
    )
    assert done.returncode == 0, done.stderr[-4000:]
