"""What every scenario is asked with."""

from __future__ import annotations

import dataclasses

from tenor.errors import UsageError
from tenor.settings import setting


@dataclasses.dataclass(frozen=True)
class BenchSettings:
    """Which sizes to measure and how often."""

    workers: str = setting("1,2", "Numbers of workers to compare, with commas between.")
    repeats: int = setting(3, "Measured runs of each contender, taken in turns.")
    warmups: int = setting(1, "Runs of each contender that are not measured, before any that is.")

    def worker_counts(self) -> tuple[int, ...]:
        """`--workers 1,2,4` as numbers."""
        try:
            counts = tuple(int(word) for word in self.workers.split(","))
        except ValueError:
            counts = ()
        if not counts or min(counts) < 1:
            raise UsageError(f"--workers cannot be {self.workers!r}", remedy="give numbers from 1 up, such as 1,2,4")
        return counts
