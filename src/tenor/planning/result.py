"""The result of a plan as a JSON file, which `tenor report` draws.

    {"format": 1, "kind": "plan", "command": …, "environment": {…}, "source": …, "target": …, "rows": [{…}, …],
     "chosen": place of a row or null, "answers": [sentences], "assumptions": [sentences],
     "quantities": {name: {"value": …, "sigma": …, "source": …}}, "experiment": {…} or null, "notes": [sentences]}

The keys of a row are those of `PlanRow.as_dict`. A number that is infinite is null.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from tenor.bench.results import damaged, read_checked
from tenor.environment import describe
from tenor.planning.experiments import Advice
from tenor.planning.quantities import Quantity
from tenor.planning.rows import PlanRow

FORMAT = 1
KIND = "plan"


@dataclass(frozen=True)
class PlanResult:
    """Everything that a reader of a plan sees."""

    source: str
    target: str
    rows: tuple[PlanRow, ...]
    chosen: int | None
    answers: tuple[str, ...]
    assumptions: tuple[str, ...]
    quantities: dict[str, Quantity]
    advice: Advice | None
    notes: tuple[str, ...] = ()
    command: str = ""

    def as_dict(self) -> dict[str, Any]:
        return {
            "format": FORMAT,
            "kind": KIND,
            "command": self.command,
            "environment": describe(),
            "source": self.source,
            "target": self.target,
            "rows": [row.as_dict() for row in self.rows],
            "chosen": self.chosen,
            "answers": list(self.answers),
            "assumptions": list(self.assumptions),
            "quantities": {name: asdict(one) for name, one in self.quantities.items()},
            "experiment": asdict(self.advice) if self.advice else None,
            "notes": list(self.notes),
        }


def read_plan(file: Path) -> dict[str, Any]:
    """Read a result file of `tenor plan --out` and check its form.

    Raises:
        UsageError: The file is damaged, of another version, or something else.
    """
    values = read_checked(file, "a file written by `tenor plan --out`", FORMAT)
    if values.get("kind") != KIND:
        raise damaged(file, "it is not a plan")
    rows = values.get("rows")
    if not isinstance(rows, list) or not all(isinstance(row, dict) for row in rows):
        raise damaged(file, "it has no rows")
    for number, row in enumerate(rows, start=1):
        for name in ("workers", "machines"):
            if not isinstance(row.get(name), int) or isinstance(row.get(name), bool):
                raise damaged(file, f"{name} of row {number} is not a whole number")
        for name in ("seconds", "dollars", "efficiency"):
            for key in (name, f"{name}_low", f"{name}_high"):
                if not isinstance(row.get(key), int | float | None) or isinstance(row.get(key), bool):
                    raise damaged(file, f"{key} of row {number} is not a number")
    for name in ("answers", "assumptions", "notes"):
        if not isinstance(values.get(name), list) or not all(isinstance(line, str) for line in values[name]):
            raise damaged(file, f"{name} are not sentences")
    if not isinstance(values.get("quantities"), dict):
        raise damaged(file, "it has no quantities")
    return values
