"""Emulate slow workers, for experiments and teaching: a worker sleeps (factor − 1) × its compute time.

Each worker stands for a machine of its own, even if several share a core here. So the compute time is the time that the
worker's thread spent on a core, without the time it waited for one. If there are more workers than cores, every other
rank sleeps before it computes; otherwise all would want a core at the start of a step and leave it idle at the end.
Such a rank estimates its compute time from its last step, a little too short, and corrects the difference later.
"""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from tenor.errors import UsageError
from tenor.settings import wrong_value

EARLY_SHARE = 0.8  # of the expected sleep, for a rank that sleeps before it computes
Clock = Callable[[], float]

_FORM = re.compile(r"(\d+):(\d+(?:\.\d+)?)(?:@(\d+)-(\d+)?)?", re.ASCII)


@dataclass(frozen=True)
class SlowPeriod:
    """One worker is `factor` times slower from step `first` to step `last`, counted from 1."""

    rank: int
    factor: float
    first: int = 1
    last: float = float("inf")


@dataclass(frozen=True)
class Slowdown:
    """All periods in which workers are slow."""

    periods: tuple[SlowPeriod, ...] = ()

    def factor(self, rank: int, step: int) -> float:
        """How many times slower a worker is at a step; the factors of overlapping periods are multiplied."""
        total = 1.0
        for period in self.periods:
            if period.rank == rank and period.first <= step <= period.last:
                total *= period.factor
        return total


class Pace:
    """Slows down one worker.

    Args:
        slowdown: When the workers are slow.
        rank: The rank of this worker.
        shares_cores: Whether there are more workers than cores.
        clock: Measures compute time.
    """

    def __init__(
        self, slowdown: Slowdown, rank: int, *, shares_cores: bool = False, clock: Clock = time.thread_time
    ) -> None:
        self.slowdown, self.rank, self.clock = slowdown, rank, clock
        self._sleeps_first = shares_cores and rank % 2 == 1
        self._seconds, self._tokens = 0.0, 1  # of the last step
        self._overslept = 0.0  # seconds that the next sleep is shorter

    @contextmanager
    def stretch(self, step: int, tokens: int) -> Iterator[None]:
        """Make the code in the `with` block take as long as on the slow machine."""
        extra = self.slowdown.factor(self.rank, step) - 1.0
        likely = self._seconds * min(1.0, tokens / self._tokens)  # not more, because a few tokens say little about many
        early = max(0.0, EARLY_SHARE * extra * likely - self._overslept) if self._sleeps_first else 0.0
        _sleep(early)
        began = self.clock()
        yield
        seconds = self.clock() - began
        self._seconds, self._tokens = seconds, max(1, tokens)
        owed = extra * seconds - early - self._overslept
        self._overslept = max(0.0, -owed)
        _sleep(owed)


def clock_of(device: str) -> Clock:
    """The clock for compute time: thread time on a CPU, elapsed time on a GPU, for which the thread only waits."""
    return time.thread_time if device == "cpu" else time.perf_counter


def _sleep(seconds: float) -> None:
    if seconds > 0:  # a sleep of 0 seconds would still give up the core
        time.sleep(seconds)


def parse_slowdown(text: str, size: int | None = None) -> Slowdown:
    """Parse `--slowdown`. `1:3@200-600,0:2` makes rank 1 three times slower from step 200 to 600, and rank 0 twice as
    slow in all steps. With `size`, ranks from `size` up are refused."""
    periods = []
    for part in filter(None, text.split(",")):
        found = _FORM.fullmatch(part.strip())
        if not found or float(found[2]) < 1.0:
            remedy = "give rank:factor or rank:factor@first-last, separated by commas, with factors of at least 1"
            raise wrong_value("slowdown", repr(part.strip()), remedy)
        period = SlowPeriod(int(found[1]), float(found[2]), int(found[3] or 1), float(found[4] or "inf"))
        if not 1 <= period.first <= period.last:
            remedy = "give a last step that is not before the first; steps count from 1"
            raise wrong_value("slowdown", repr(part.strip()), remedy)
        if size is not None and period.rank >= size:
            raise UsageError(
                f"--slowdown names rank {period.rank}, which does not exist", remedy=f"give a rank from 0 to {size - 1}"
            )
        periods.append(period)
    return Slowdown(tuple(periods))
