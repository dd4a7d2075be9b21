"""Train several cells on the same data, one after another, and put them side by side."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from tenor.errors import UsageError
from tenor.progress import SILENT, Progress
from tenor.training.launch import claim, train
from tenor.training.settings import TrainSettings

COLUMNS = ("accuracy", "f1_macro", "auc")


@dataclass(frozen=True)
class Comparison:
    """One row a cell; `as_dict` is the --json of `tenor train --compare`."""

    out: Path
    rows: list[dict[str, Any]]

    def as_dict(self) -> dict[str, Any]:
        return {"compare": self.rows, "run": str(self.out)}


def compare(
    data: str | Path, out: str | Path, settings: TrainSettings, cells: Sequence[str], progress: Progress = SILENT
) -> Comparison:
    """Train each cell into `out`/CELL, with everything else the same; compare.json in `out` holds the rows."""
    if len(set(cells)) != len(cells) or not cells:
        raise UsageError(f"--compare cannot be {','.join(cells)!r}", remedy="name each cell once, such as lstm,gru")
    if settings.task != "reviews":
        raise UsageError(f"--compare is for cells, which the task {settings.task} has none of", remedy="leave it away")
    runs = {cell: replace(settings, cell=cell) for cell in cells}  # refuses an unknown cell before any is trained
    folder = Path(out)
    claim(folder, settings.resume)
    rows = []
    for cell, chosen in runs.items():
        progress.say(f"cell {cell}")
        rows.append({"cell": cell, **_row(train(data, folder / cell, chosen, progress).values)})
    (folder / "compare.json").write_text(json.dumps(rows, indent=1) + "\n", "utf-8")
    return Comparison(folder, rows)


def _row(values: dict[str, Any]) -> dict[str, Any]:
    scores = {f"{split}_{name}": values[split].get(name) for split in ("valid", "test") for name in COLUMNS}
    baseline = values["valid"].get("majority_baseline", {}).get("accuracy")
    return {
        **scores,
        "majority_accuracy": baseline,
        "samples_per_s": values["samples_per_s"],
        "seconds": values["seconds"],
    }
