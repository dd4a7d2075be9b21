"""The tables of a scaling experiment: one per stage, strategy and kind of scaling, from the rows of its result."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

STRONG, WEAK, UNTIL = "strong", "weak", "until"
BASE = "base"  # the first number of workers, at which strong and weak scaling have the same work
TITLES = {
    STRONG: "strong scaling: the same work for all workers together",
    WEAK: "weak scaling: the same work for each worker",
    UNTIL: "until the threshold",
}
SHARED = "more processes than cores: not scaling"

Row = Mapping[str, Any]


@dataclass(frozen=True)
class ScalingTable:
    """Rows that belong together, by rising number of workers."""

    stage: str
    strategy: str  # empty for stages other than training, and for the default strategy
    kind: str
    rows: tuple[Row, ...]

    @property
    def title(self) -> str:
        """Such as `train with local-sgd, strong scaling: the same work for all workers together`."""
        name = f"{self.stage} with {self.strategy}" if self.strategy else self.stage
        network = next((row["network"] for row in self.rows if row.get("network")), None)
        return f"{name}, {TITLES[self.kind]}" + (f" (network {network})" if network else "")

    @property
    def cells(self) -> tuple[list[str], list[list[Any]]]:
        """The head and the rows of the table, with a note where workers share cores."""
        head, cells = _threshold_cells(self.rows) if self.kind == UNTIL else _speed_cells(self.rows)
        if not any(row.get("shares_cores") for row in self.rows):
            return head, cells
        notes = [SHARED if row.get("shares_cores") else "" for row in self.rows]
        return [*head, "note"], [[*line, note] for line, note in zip(cells, notes, strict=True)]


def line_of(row: Row) -> tuple[str, str, str]:
    """Stage, strategy and network of a row: rows that differ in one of them are never compared."""
    return str(row.get("stage", "train")), str(row.get("strategy") or ""), str(row.get("network") or "")


def scaling_tables(rows: Sequence[Row]) -> list[ScalingTable]:
    """The tables of the rows of a `scaling` result, in the order of the rows; tables of a single row are left out."""
    tables = []
    for stage, strategy, network in dict.fromkeys(map(line_of, rows)):
        own = [row for row in rows if line_of(row) == (stage, strategy, network)]
        for kind in (STRONG, WEAK, UNTIL):
            kinds = (kind,) if kind == UNTIL else (BASE, kind)
            found = tuple(sorted((row for row in own if row.get("kind", STRONG) in kinds), key=_workers))
            if any(row.get("kind", STRONG) == kind for row in found):
                tables.append(ScalingTable(stage, "" if strategy == "auto" else strategy, kind, found))
    return tables


def _workers(row: Row) -> int:
    return int(row["workers"])


def _speed_cells(rows: Sequence[Row]) -> tuple[list[str], list[list[Any]]]:
    has_bytes = any(row.get("bytes_per_step") for row in rows)
    head = ["workers", "reviews/s", "min–max", "speed-up", "min–max", "efficiency"]
    head += ["MB sent per step"] if has_bytes else []
    cells = [
        [
            row["workers"],
            _rounded(row.get("samples_per_s"), 0),
            span(row, "samples_per_s", 0),
            _rounded(row.get("speed_up"), 2),
            span(row, "speed_up", 2),
            _rounded(row.get("efficiency"), 2),
            *([_rounded(row.get("bytes_per_step"), 3, 1e-6)] if has_bytes else []),
        ]
        for row in rows
    ]
    return head, cells


def _threshold_cells(rows: Sequence[Row]) -> tuple[list[str], list[list[Any]]]:
    goals = dict.fromkeys(str(key).removeprefix("epochs_to_") for row in rows for key in row if _is_goal(key))
    head, cells = ["workers"], [[row["workers"]] for row in rows]
    for goal in goals:
        words = goal.replace("_", " ")
        head += [f"epochs to {words}", f"seconds to {words}", "min–max"]
        for row, line in zip(rows, cells, strict=True):
            epochs, seconds = row.get(f"epochs_to_{goal}"), row.get(f"seconds_to_{goal}")
            line += [_rounded(epochs, 0), _rounded(seconds, 1), span(row, f"seconds_to_{goal}", 1)]
    for row, line in zip(rows, cells, strict=True):
        line.append(_rounded(row.get("valid_accuracy"), 4))
    return [*head, "final accuracy"], cells


def _is_goal(key: Any) -> bool:
    return isinstance(key, str) and key.startswith("epochs_to_")


def _rounded(value: Any, digits: int, scale: float = 1.0) -> str:
    """A number as text; a dash for one that is missing or infinite, as a threshold that was never reached."""
    if not isinstance(value, int | float) or not math.isfinite(value):
        return "–"
    return f"{value * scale:,.{digits}f}"


def span(row: Row, figure: str, digits: int) -> str:
    """The smallest and the largest repeat, such as `0.96–1.02`."""
    found = row.get("spread", {}).get(figure)
    if not isinstance(found, dict) or not {"min", "max"} <= set(found):
        return "–"
    return f"{_rounded(found['min'], digits)}–{_rounded(found['max'], digits)}"
