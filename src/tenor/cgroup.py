"""Reads the CPU and memory limits of Linux control groups, which containers and job schedulers use.

A process is in one group (version 2) or in one group per controller (version 1). The limits of all parent groups apply
too. A container may not see its parent groups; then only the visible ones are read.
"""

from __future__ import annotations

import contextlib
import math
from collections.abc import Callable, Iterator
from pathlib import Path

ROOT = Path("/sys/fs/cgroup")
OWN = Path("/proc/self/cgroup")  # lines `number:controllers:group`; version 2 has one line `0::group`


def cpu_quota(root: Path = ROOT, own: Path = OWN) -> float:
    """Return the CPU time this process may use, in cores; infinite without a limit."""
    return _lowest_limit(_cores, "cpu", root, own)


def free_memory(root: Path = ROOT, own: Path = OWN) -> float:
    """Return the bytes this process may still allocate, with cached files counted as used; infinite without a limit."""
    return _lowest_limit(_free_bytes, "memory", root, own)


def _lowest_limit(read_limit: Callable[[Path], float], controller: str, root: Path, own: Path) -> float:
    """Return the lowest limit among the groups of this process."""
    found = [math.inf]
    for folder in _folders(controller, root, own):
        with contextlib.suppress(OSError, ValueError):  # the group has no such file, or we may not read it
            found.append(read_limit(folder))
    return min(found)


def _folders(controller: str, root: Path, own: Path) -> Iterator[Path]:
    """Yield the folders of the groups of this process, from its own group up to the root."""
    try:
        lines = own.read_text("utf-8").splitlines()
    except OSError:
        return
    for line in lines:
        _, controllers, group = line.split(":", 2)
        if controllers and controller not in controllers.split(","):
            continue
        top = root / controllers
        place = top / group.strip("/")
        for folder in (place, *place.parents):
            yield folder
            if folder == top:
                break


def _cores(folder: Path) -> float:
    if (folder / "cpu.max").exists():
        quota, period = (folder / "cpu.max").read_text("utf-8").split()
    else:
        quota, period = (_read(folder, name) for name in ("cpu.cfs_quota_us", "cpu.cfs_period_us"))
    return math.inf if quota in ("max", "-1") else float(quota) / float(period)


def _free_bytes(folder: Path) -> float:
    if (folder / "memory.current").exists():
        limits, used = [_read(folder, name) for name in ("memory.max", "memory.high")], _read(folder, "memory.current")
    else:
        limits, used = [_read(folder, "memory.limit_in_bytes")], _read(folder, "memory.usage_in_bytes")
    limit = min(math.inf if text == "max" else float(text) for text in limits)
    return max(0.0, limit - float(used))


def _read(folder: Path, name: str) -> str:
    return (folder / name).read_text("utf-8").strip()
