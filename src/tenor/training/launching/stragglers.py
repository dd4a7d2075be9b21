"""Find stragglers: workers that the others wait for in most steps.

Workers are compared about once per second of computing. On a shared machine, every worker is slow for a moment now and
then; a straggler is slow in most of the last comparisons.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass, field
from statistics import median

SLOW_RATIO = 1.3  # a worker is slow if it computes this many times as long as the others
COMPARED_SECONDS = 1.0  # of computing in one comparison; at least one step
NUM_COMPARISONS = 10  # the last ones that count
SLOW_TO_BECOME = 8  # slow comparisons that make a worker a straggler
SLOW_TO_RECOVER = 4  # slow comparisons that a worker may have when it stops being one


@dataclass(frozen=True)
class Straggler:
    rank: int
    ratio: float  # its compute time divided by the others'

    @property
    def short(self) -> str:
        return f"worker {self.rank}: {self.ratio:.1f}×"

    def __str__(self) -> str:
        return f"worker {self.rank} takes {self.ratio:.1f}× as long as the others"


@dataclass
class StragglerDetector:
    """Watches the workers' compute seconds, step by step."""

    spent: list[float] = field(default_factory=list)  # seconds per worker since the last comparison
    ratios: deque[list[float]] = field(default_factory=lambda: deque(maxlen=NUM_COMPARISONS))  # one list per comparison
    ranks: set[int] = field(default_factory=set)  # the stragglers at present

    def observe(self, compute_seconds: Sequence[float]) -> Straggler | None:
        """Add one step. Returns the worst straggler at present, if any."""
        if len(compute_seconds) < 2 or not all(seconds > 0 for seconds in compute_seconds):
            return None
        before = self.spent or [0.0] * len(compute_seconds)
        self.spent = [old + new for old, new in zip(before, compute_seconds, strict=True)]
        if max(self.spent) >= COMPARED_SECONDS:
            self.ratios.append([_ratio(self.spent, rank) for rank in range(len(self.spent))])
            self.spent = []
            self._update()
        usual = {rank: median(step[rank] for step in self.ratios) for rank in self.ranks}
        worst = max(usual, key=usual.__getitem__, default=None)
        return None if worst is None else Straggler(worst, usual[worst])

    def _update(self) -> None:
        counts = [sum(ratio >= SLOW_RATIO for ratio in worker) for worker in zip(*self.ratios, strict=True)]
        self.ranks = {
            rank
            for rank, slow in enumerate(counts)
            if slow >= SLOW_TO_BECOME or (rank in self.ranks and slow > SLOW_TO_RECOVER)
        }


def _ratio(seconds: Sequence[float], rank: int) -> float:
    return seconds[rank] / median([*seconds[:rank], *seconds[rank + 1 :]])
