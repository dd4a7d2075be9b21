"""How the compute threads of one process wait for each other.

The threads of an OpenMP team meet after every parallel operation, thousands of times per second. By default a thread
that arrives first spins for about 10 ms before it sleeps. Where another process takes one of the cores, the spinning
thread keeps the late one from running, and each of those meetings can cost a time slice of the scheduler: training
with two threads beside one busy process has been measured at a twentieth of its speed. Threads that spin only for some
tens of microseconds lose little on a quiet machine and keep working on a busy one. On a machine that is busy already
they spin for less: an awake core is quick to wake another thread, so spinning gains little there and costs much.
"""

from __future__ import annotations

import math
import os
import time
from collections.abc import Mapping
from pathlib import Path

SPIN_COUNT = 1000  # looks at the other threads before sleeping; each takes 20 to 50 ns
BUSY_SPIN_COUNT = 200  # the same on a machine that lacks idle cores
LOOK_SECONDS = 0.1  # how long the machine is watched to find out
STAT = Path("/proc/stat")
_CHOICES = ("OMP_WAIT_POLICY", "GOMP_SPINCOUNT", "KMP_BLOCKTIME")
_set_here: list[str] = []  # the value that `limit_spinning` has put into the environment


def waiting_variables(environ: Mapping[str, str], is_busy: bool = False) -> dict[str, str]:
    """The variables that limit spinning; none if the user has set one of them.

    They take effect in processes that load torch afterwards.

    Args:
        environ: The environment that the processes inherit.
        is_busy: Whether the machine lacks idle cores for their threads.
    """
    is_ours = bool(_set_here) and environ.get("GOMP_SPINCOUNT") == _set_here[0]
    if not is_ours and any(name in environ for name in _CHOICES):
        return {}
    return {"GOMP_SPINCOUNT": str(BUSY_SPIN_COUNT if is_busy else SPIN_COUNT)}


def limit_spinning() -> None:
    """Limit spinning in this process, which must not have loaded torch yet, and in those that it starts."""
    chosen = waiting_variables(os.environ)
    os.environ.update(chosen)
    _set_here[:] = chosen.values()


def is_busy(threads: int, seconds: float = LOOK_SECONDS) -> bool:
    """Whether fewer than `threads` of the cores that this process may use are idle; takes `seconds` to find out."""
    return idle_cores(seconds) < threads - 0.5


def idle_cores(seconds: float, stat: Path = STAT) -> float:
    """The average number of idle cores over the next `seconds`; infinite if the system does not say."""
    try:
        before = _ticks(stat)
        time.sleep(seconds)
        after = _ticks(stat)
        spans = {core: (after[core][0] - idle, after[core][1] - total) for core, (idle, total) in before.items()}
    except (OSError, ValueError, KeyError):
        return math.inf
    return sum(idle / total for idle, total in spans.values() if total > 0) if spans else math.inf


def _ticks(stat: Path) -> dict[int, tuple[int, int]]:
    """The idle and the total clock ticks of each core that this process may use, since the machine started."""
    usable = os.sched_getaffinity(0) if hasattr(os, "sched_getaffinity") else None
    found = {}
    for line in stat.read_text("ascii").splitlines():
        name, *ticks = line.split()
        core = name.removeprefix("cpu")
        if name != core and core.isdecimal() and (usable is None or int(core) in usable):
            numbers = [int(tick) for tick in ticks[:8]]  # user, nice, system, idle, iowait, irq, softirq, steal
            found[int(core)] = (numbers[3] + numbers[4], sum(numbers))
    return found


def describe_team(workers: int, threads: int) -> str:
    """`2 workers with 1 thread each`: what was chosen, for people."""
    each = " each" if workers > 1 else ""
    return f"{_count(workers, 'worker')} with {_count(threads, 'thread')}{each}"


def _count(number: int, noun: str) -> str:
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"
