"""Emulated slow and wavering workers, for experiments and teaching: a sleep of (factor − 1) × the compute time.

The workers stand for machines of their own, however few cores they share here. So compute time is what the worker's
thread spent on a core, without the time it stood in line for one; and where there are more workers than cores every
other rank sleeps before it computes, so that not all want a core at the start of a step and leave it idle at the end.
How long it will compute it guesses from its last step, rather too short; what it slept too little or too long it makes
good for.
"""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from tenor.errors import UsageError

EARLY = 0.8  # of the sleep that a step is likely to need, for those who sleep first
Clock = Callable[[], float]

_FORM = re.compile(r"(\d+):(\d+(?:\.\d+)?)(?:@(\d+)-(\d+)?)?", re.ASCII)


@dataclass(frozen=True)
class Spell:
    """One worker is `factor` times slower in the steps from `first` to `last`, counted from 1."""

    rank: int
    factor: float
    first: int = 1
    last: float = float("inf")


@dataclass(frozen=True)
class Slowdown:
    spells: tuple[Spell, ...] = ()

    def factor(self, rank: int, step: int) -> float:
        """How many times slower a worker is at a step; spells that overlap multiply."""
        total = 1.0
        for spell in self.spells:
            if spell.rank == rank and spell.first <= step <= spell.last:
                total *= spell.factor
        return total


class Pace:
    """One worker's emulated slowness."""

    def __init__(
        self, slowdown: Slowdown, rank: int, *, shares_cores: bool = False, clock: Clock = time.thread_time
    ) -> None:
        self.slowdown, self.rank, self.clock = slowdown, rank, clock
        self._sleeps_first = shares_cores and rank % 2 == 1
        self._seconds, self._tokens = 0.0, 1  # of the last step
        self._overslept = 0.0  # seconds, to be made good for

    @contextmanager
    def stretch(self, step: int, tokens: int) -> Iterator[None]:
        """Let what is done inside take as long as it would on the slow machine."""
        extra = self.slowdown.factor(self.rank, step) - 1.0
        likely = self._seconds * min(1.0, tokens / self._tokens)  # not more: few tokens tell little of many
        early = max(0.0, EARLY * extra * likely - self._overslept) if self._sleeps_first else 0.0
        _sleep(early)
        began = self.clock()
        yield
        seconds = self.clock() - began
        self._seconds, self._tokens = seconds, max(1, tokens)
        owed = extra * seconds - early - self._overslept
        self._overslept = max(0.0, -owed)
        _sleep(owed)


def clock_of(device: str) -> Clock:
    """What computing takes: on a GPU the time gone by, since the thread that waits for it is on no core."""
    return time.thread_time if device == "cpu" else time.perf_counter


def _sleep(seconds: float) -> None:
    if seconds > 0:  # even a sleep of no time lets other threads in
        time.sleep(seconds)


def parse_slowdown(text: str, size: int | None = None) -> Slowdown:
    """`1:3@200-600,0:2`: rank 1 is three times slower in the steps 200 to 600, rank 0 twice at all times."""
    spells = []
    for part in filter(None, text.split(",")):
        found = _FORM.fullmatch(part.strip())
        if not found or float(found[2]) < 1.0:
            remedy = "give rank:factor, or rank:factor@first-last, with commas between; factors from 1 up"
            raise UsageError(f"--slowdown cannot be {part.strip()!r}", remedy=remedy)
        spell = Spell(int(found[1]), float(found[2]), int(found[3] or 1), float(found[4] or "inf"))
        if not 1 <= spell.first <= spell.last:
            remedy = "the last step must not be before the first; steps count from 1"
            raise UsageError(f"--slowdown cannot be {part.strip()!r}", remedy=remedy)
        if size is not None and spell.rank >= size:
            raise UsageError(f"--slowdown names rank {spell.rank}", remedy=f"ranks go from 0 to {size - 1}")
        spells.append(spell)
    return Slowdown(tuple(spells))
