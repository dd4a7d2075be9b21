"""The result of a plan as a JSON file, which `tenor report` draws.

    {"format": 1, "scenario": "plan", "command": …, "environment": {…}, "source": …, "target": …, "rows": [{…}, …],
     "chosen": place of a row or null, "answers": [sentences], "assumptions": [sentences],
     "quantities": {name: {"value": …, "sigma": …, "source": …}}, "experiment": {…} or null, "notes": [sentences]}

The keys of a row are those of `PlanRow.as_dict`. A number that is infinite is null.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass, field
from typing import Any

from tenor.environment import describe
from tenor.planning.experiments import Advice
from tenor.planning.quantities import Quantity
from tenor.planning.rows import PlanRow

FORMAT = 1
SCENARIO = "plan"


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
    environment: dict[str, Any] = field(default_factory=describe)

    def as_dict(self) -> dict[str, Any]:
        return {
            "format": FORMAT,
            "scenario": SCENARIO,
            "command": self.command,
            "environment": self.environment,
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
