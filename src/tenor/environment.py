"""Describes the machine, the versions and the date, for run folders and benchmark results.

The description contains no host name, user name or path, so it can be published.
"""

from __future__ import annotations

import datetime
import math
import os
import platform
import subprocess
from importlib import metadata
from pathlib import Path
from typing import Any

from tenor import __version__, cgroup
from tenor.errors import UsageError

MOST_PER_CORE = 32  # worker processes, each of which takes 100 MB or more, or threads
CORE = ("numpy", "pyarrow", "numba", "h5py", "fsspec", "torch", "safetensors", "typer", "rich", "matplotlib")


def describe() -> dict[str, Any]:
    """Return the environment as a JSON object. Versions come from package metadata, so no package is imported."""
    return {
        "date": datetime.datetime.now(datetime.UTC).strftime("%Y-%m-%dT%H:%M:%SZ"),
        "machine": machine(),
        "versions": {"python": platform.python_version(), "tenor": __version__, **core_versions()},
    }


def machine() -> dict[str, Any]:
    """Return the system, the processor, the usable cores and the memory."""
    return {
        "system": f"{platform.system()} {platform.release()}",
        "architecture": platform.machine(),
        "processor": _processor(),
        "cores": usable_cores(),
        "memory_gib": round(memory_bytes() / 2**30, 1),
    }


def commit() -> str | None:
    """Return the commit of Tenor's source, with `-dirty` if files differ from it; None outside a checkout."""
    words = ["git", "-C", str(Path(__file__).parent), "describe", "--always", "--dirty", "--abbrev=40", "--exclude=*"]
    try:
        found = subprocess.run(words, capture_output=True, text=True, timeout=10, check=True)
    except (OSError, subprocess.SubprocessError):
        return None
    return found.stdout.strip() or None


def core_versions() -> dict[str, str | None]:
    """Return the version of each core dependency; None for one that is missing."""
    return {name: version(name) for name in CORE}


def version(distribution: str) -> str | None:
    """Return the installed version of a distribution, or None."""
    try:
        return metadata.version(distribution)
    except metadata.PackageNotFoundError:
        return None


def usable_cores() -> int:
    """Return the number of cores this process may use, which a scheduler or a container may limit."""
    affinity = getattr(os, "sched_getaffinity", None)  # Linux only
    cores = len(affinity(0)) if affinity else os.cpu_count() or 1
    return max(1, math.ceil(min(cores, cgroup.cpu_quota())))


def num_workers(workers: int | str) -> int:
    """Return the number of worker processes for a `workers` setting.

    Args:
        workers: A number, or `auto` for one worker per usable core.

    Raises:
        UsageError: So many processes would use up the memory of this machine, or the process ids.
    """
    if workers == "auto":
        return usable_cores()
    refuse_crowd("--workers", int(workers))
    return int(workers)


def num_threads(threads: int, workers: int) -> int:
    """Return the threads per worker: `threads`, or the cores divided among the workers if it is 0.

    Raises:
        UsageError: `threads` is far more than this machine has cores.
    """
    refuse_crowd("--threads", threads)
    return threads or max(1, usable_cores() // workers)


def refuse_crowd(option: str, number: int) -> None:
    """Raise UsageError if this machine could hardly start so many processes or threads."""
    cores = usable_cores()
    if number > MOST_PER_CORE * cores:
        what = f"{option} {number} is too many for this machine, which has {cores} core{'s' * (cores > 1)}"
        raise UsageError(what, remedy=f"use at most {MOST_PER_CORE * cores}, which is {MOST_PER_CORE} per core")


def memory_bytes() -> int:
    """Return the physical memory of the machine, or 0 if the system does not report it."""
    try:
        return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    except (ValueError, OSError, AttributeError):
        return 0


def _processor() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text("utf-8", "replace").splitlines()
    except OSError:
        return platform.processor() or "unknown"
    names = (line.partition(":")[2].strip() for line in lines if line.startswith("model name"))
    return next(names, platform.processor() or "unknown")
