"""Where figures come from: machine, cores, memory, versions and date, for run folders and benchmarks alike.

It names no host, user or path, so it can be published beside the figures.
"""

from __future__ import annotations

import contextlib
import datetime
import math
import os
import platform
from importlib import metadata
from pathlib import Path
from typing import Any

from tenor import __version__

CORE = ("numpy", "pyarrow", "numba", "h5py", "fsspec", "torch", "safetensors", "typer", "rich", "matplotlib")


def describe() -> dict[str, Any]:
    """The environment as a JSON object. Versions come from installed metadata: nothing heavy is imported."""
    return {
        "date": datetime.datetime.now(datetime.UTC).strftime("%Y-%m-%dT%H:%M:%SZ"),
        "machine": machine(),
        "versions": {"python": platform.python_version(), "tenor": __version__, **core_versions()},
    }


def machine() -> dict[str, Any]:
    """Processor, usable cores and memory."""
    return {
        "system": f"{platform.system()} {platform.release()}",
        "architecture": platform.machine(),
        "processor": _processor(),
        "cores": usable_cores(),
        "memory_gib": round(memory_bytes() / 2**30, 1),
    }


def core_versions() -> dict[str, str | None]:
    """Version of each core dependency, None where it is missing."""
    return {name: version(name) for name in CORE}


def version(distribution: str) -> str | None:
    """The installed version of a distribution, or None."""
    try:
        return metadata.version(distribution)
    except metadata.PackageNotFoundError:
        return None


def usable_cores() -> int:
    """Cores this process may run on: what a scheduler or a container grants, not what the machine has."""
    affinity = getattr(os, "sched_getaffinity", None)  # Linux only
    cores = len(affinity(0)) if affinity else os.cpu_count() or 1
    return max(1, math.ceil(min(cores, _quota())))


def _quota(root: Path = Path("/sys/fs/cgroup"), own: Path = Path("/proc/self/cgroup")) -> float:
    """Cores' worth of time that a container is granted (control groups, version 2), by any of the groups it is in."""
    try:
        group = next(line[3:].strip() for line in own.read_text("utf-8").splitlines() if line.startswith("0::"))
    except (OSError, StopIteration):
        return math.inf
    place = root / group.strip("/")
    granted = [math.inf]
    for folder in (place, *place.parents):
        with contextlib.suppress(OSError, ValueError):  # the topmost has no file; another's is not ours to read
            quota, period = (folder / "cpu.max").read_text("utf-8").split()
            granted += [float(quota) / float(period)] if quota != "max" else []
        if folder == root:
            break
    return min(granted)


def memory_bytes() -> int:
    """Physical memory, or 0 where the system does not tell."""
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
