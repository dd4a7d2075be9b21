"""Train several cells on the same data, one after another, and compare them."""

from __future__ import annotations

import json
from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from tenor.errors import UsageError
from tenor.models.deep.cells import CELLS
from tenor.progress import SILENT, Progress
from tenor.settings import wrong_value
from tenor.training.launching.launch import claim_folder, train
from tenor.training.settings import TrainSettings
from tenor.training.traits import TASKS

METRICS = ("accuracy", "f1_macro", "auc")


@dataclass(frozen=True)
class Comparison:
    """One row per cell. `as_dict` is what `tenor train --compare --json` prints."""

    out: Path
    rows: list[dict[str, Any]]

    def as_dict(self) -> dict[str, Any]:
        """All rows and the folder, as JSON values."""
        return {"compare": self.rows, "run": str(self.out)}


def compare(
    data: str | Path,
    out: str | Path,
    settings: TrainSettings,
    cells: Sequence[str],
    progress: Progress = SILENT,
    given: Collection[str] | None = None,
) -> Comparison:
    """Train one model per cell with otherwise equal settings.

    Args:
        data: A folder made by `tenor.prepare`.
        out: The folder to create. The run of a cell is in `out`/CELL, the rows are in `out`/compare.json.
        settings: How to train; the cell is replaced.
        cells: The cells to compare, each once.
        progress: Receives messages and progress; silent by default.
        given: The names of the settings that the caller chose, for resumed runs; see `tenor.train`.

    Returns:
        One row per cell with its metrics, the majority baseline and its speed.

    Raises:
        UsageError: A cell is unknown or named twice, or the task has no cells.
        TenorError: All errors of `tenor.train`.

    Example:
        >>> compare("data", "runs", TrainSettings(epochs=2), ["lstm", "gru"]).rows  # doctest: +SKIP
        [{'cell': 'lstm', 'valid_accuracy': 0.87, ...}, {'cell': 'gru', ...}]
    """
    if len(set(cells)) != len(cells) or not cells:
        raise wrong_value("compare", repr(",".join(cells)), "name each cell once, such as lstm,gru")
    if not TASKS[settings.task].has_cells:
        raise UsageError(f"--compare has no effect with --task {settings.task}, which has no cells", remedy="omit it")
    runs = {cell: replace(settings, cell=cell) for cell in cells}  # refuses an unknown cell before the first training
    folder = Path(out)
    rows = []
    with claim_folder(folder, settings.resume):
        for cell, chosen in runs.items():
            progress.say(f"cell {cell}")
            result = train(data, folder / cell, chosen, progress, _given(cell, cells, given))
            rows.append({"cell": cell, **_row(result.values)})
        (folder / "compare.json").write_text(json.dumps(rows, indent=1) + "\n", "utf-8")
    return Comparison(folder, rows)


def _given(cell: str, cells: Sequence[str], given: Collection[str] | None) -> Collection[str] | None:
    """The settings that the caller chose for this cell, without those that only other cells have."""
    if given is None:
        return None
    has_window = {name: CELLS[name].has_window for name in cells}
    others = {"window"} if any(has_window.values()) and not has_window[cell] else set()
    return {"cell", *given} - others


def _row(values: dict[str, Any]) -> dict[str, Any]:
    scores = {f"{split}_{name}": values[split].get(name) for split in ("valid", "test") for name in METRICS}
    baseline = values["valid"].get("majority_baseline", {}).get("accuracy")
    return {
        **scores,
        "majority_accuracy": baseline,
        "train_rows": values["train_rows"],
        "samples_per_s": values["samples_per_s"],
        "seconds": values["seconds"],
    }
