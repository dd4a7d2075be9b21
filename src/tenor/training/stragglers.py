"""Which worker the others wait for."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from statistics import median

NOTICEABLE = 1.3  # times the others' compute time
FADE = 0.9
ENOUGH = 5  # steps before anyone is blamed


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

    ratios: list[float] = field(default_factory=list)
    seen: int = 0

    def observe(self, compute_seconds: Sequence[float]) -> Straggler | None:
        """Take in one step; the worker that stands out for the worse over the last ten steps or so, if one does."""
        if len(compute_seconds) < 2 or not all(seconds > 0 for seconds in compute_seconds):
            return None
        now = [_ratio(compute_seconds, rank) for rank in range(len(compute_seconds))]
        if len(self.ratios) != len(now):
            self.ratios, self.seen = now, 0
        # A pause of the machine in one step must not make a straggler: a single step counts as thrice at most.
        self.ratios = [FADE * old + (1 - FADE) * min(new, 3 * old) for old, new in zip(self.ratios, now, strict=True)]
        self.seen += 1
        worst = max(range(len(now)), key=self.ratios.__getitem__)
        if self.seen < ENOUGH or self.ratios[worst] < NOTICEABLE:
            return None
        return Straggler(worst, self.ratios[worst])


def _ratio(seconds: Sequence[float], rank: int) -> float:
    return seconds[rank] / median([*seconds[:rank], *seconds[rank + 1 :]])
