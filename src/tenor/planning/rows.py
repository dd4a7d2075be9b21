"""The rows of a plan: figures with intervals, their JSON form, and the Pareto front of time and money."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from tenor.bench.pareto import pareto_front
from tenor.planning.step import StepSeconds


@dataclass(frozen=True)
class Interval:
    """A predicted figure and the ends of its interval."""

    value: float
    low: float
    high: float

    def scaled(self, factor: float) -> Interval:
        return Interval(factor * self.value, factor * self.low, factor * self.high)


@dataclass(frozen=True)
class PlanRow:
    """One line of a plan. Each figure has an interval that should hold 9 of 10 times."""

    workers: int
    machine: str
    machines: int  # to rent
    hosts: int  # of the computing workers
    strategy: str
    batch_size: int | None  # None where only finished runs are known
    epochs: float | None
    step: Interval | None  # seconds
    epoch: Interval | None  # seconds
    total: Interval  # seconds
    dollars: Interval
    efficiency: Interval
    accuracy: Interval | None
    parts: StepSeconds | None
    prepare: Interval | None  # seconds
    extrapolated: tuple[str, ...]
    is_pareto: bool = False

    def as_dict(self) -> dict[str, Any]:
        """The row as JSON values; every unit is in a name."""
        flat = {
            "step_seconds": self.step,
            "epoch_seconds": self.epoch,
            "seconds": self.total,
            "dollars": self.dollars,
            "efficiency": self.efficiency,
            "accuracy": self.accuracy,
            "prepare_seconds": self.prepare,
        }
        figures: dict[str, float | None] = {}
        for name, span in flat.items():
            figures[name] = span.value if span else None
            figures[f"{name}_low"], figures[f"{name}_high"] = (span.low, span.high) if span else (None, None)
        return {
            "workers": self.workers,
            "machine": self.machine,
            "machines": self.machines,
            "strategy": self.strategy,
            "batch_size": self.batch_size,
            "epochs": self.epochs,
            **figures,
            "bytes_per_step": self.parts.bytes_sent if self.parts else None,
            "compute_seconds": self.parts.compute if self.parts else None,
            "exchange_seconds": self.parts.exchange if self.parts else None,
            "update_seconds": self.parts.update if self.parts else None,
            "extrapolated": bool(self.extrapolated),
            "beyond": list(self.extrapolated),
            "pareto": self.is_pareto,
        }


def mark_front(rows: Sequence[PlanRow]) -> tuple[PlanRow, ...]:
    """Mark the rows of the Pareto front: no other row is both faster and cheaper."""
    front = pareto_front([(row.dollars.value, row.total.value) for row in rows])
    return tuple(
        replace(row, is_pareto=math.isfinite(row.total.value) and is_best)
        for row, is_best in zip(rows, front, strict=True)
    )
