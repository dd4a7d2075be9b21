"""Which worker the others wait for."""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass, field
from statistics import median

NOTICEABLE = 1.3  # times the others' compute time
ENOUGH = 5  # steps before anyone is blamed
LAST = 10  # steps that count


@dataclass(frozen=True)
class Straggler:
    rank: int
    ratio: float  # its compute time in terms of the others'

    @property
    def short(self) -> str:
        return f"worker {self.rank}: {self.ratio:.1f}×"

    def __str__(self) -> str:
        return f"worker {self.rank} takes {self.ratio:.1f}× as long as the others"


@dataclass
class Stragglers:
    """Watches the workers' compute seconds, step by step."""

    ratios: deque[list[float]] = field(default_factory=lambda: deque(maxlen=LAST))  # by step and worker

    def observe(self, compute_seconds: Sequence[float]) -> Straggler | None:
        """Take in one step; the worker that stands out for the worse in most of the last steps, if one does. So neither
        a pause of the machine nor a slow first step makes a straggler."""
        if len(compute_seconds) < 2 or not all(seconds > 0 for seconds in compute_seconds):
            return None
        self.ratios.append([_ratio(compute_seconds, rank) for rank in range(len(compute_seconds))])
        if len(self.ratios) < ENOUGH:
            return None
        usual = [median(worker) for worker in zip(*self.ratios, strict=True)]
        worst = max(range(len(usual)), key=usual.__getitem__)
        return Straggler(worst, usual[worst]) if usual[worst] >= NOTICEABLE else None


def _ratio(seconds: Sequence[float], rank: int) -> float:
    return seconds[rank] / median([*seconds[:rank], *seconds[rank + 1 :]])
