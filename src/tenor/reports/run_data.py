"""Read a run folder for drawing. Nothing in it is trusted: values may be missing, of another kind or not finite."""

from __future__ import annotations

import dataclasses
import json
import math
from pathlib import Path
from typing import Any

from tenor.errors import RunError


@dataclasses.dataclass(frozen=True)
class RunData:
    """The JSON side of a run folder."""

    name: str
    config: dict[str, Any]
    environment: dict[str, Any]
    result: dict[str, Any]  # empty while the run has not ended
    steps: list[dict[str, Any]]
    epochs: list[dict[str, Any]]

    @property
    def classes(self) -> list[str]:
        classes = self.config.get("classes")
        return [str(name) for name in classes] if isinstance(classes, list) else []

    def metrics(self, split: str) -> dict[str, Any]:
        """The metrics of `valid` or `test`; the last epoch's stand in for a run that has not ended."""
        found = self.result.get(split)
        if not isinstance(found, dict) and split == "valid" and self.epochs:
            found = self.epochs[-1].get("valid")
        return found if isinstance(found, dict) else {}


def read_run(folder: Path) -> RunData:
    """Read what `tenor train` wrote; RunError where the folder is no run or a file is damaged."""
    if not (folder / "config.json").is_file():
        raise RunError("no run folder: it has no config.json", where=folder, remedy="give the --out of tenor train")
    events = _read_lines(folder / "metrics.jsonl")
    ends = [event for event in events if event.get("event") == "end"]
    return RunData(
        name=folder.resolve().name,
        config=_read_object(folder / "config.json"),
        environment=_read_object(folder / "environment.json"),
        result=_read_object(folder / "result.json") or (ends[-1] if ends else {}),
        steps=[event for event in events if event.get("event") == "step"],
        epochs=[event for event in events if event.get("event") == "epoch"],
    )


def number(value: Any) -> float | None:
    """A finite number, or None for anything else."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    return float(value) if math.isfinite(value) else None


def _read_object(file: Path) -> dict[str, Any]:
    if not file.is_file():
        return {}
    try:
        value = json.loads(file.read_text("utf-8"))
    except (ValueError, RecursionError) as error:
        raise RunError(f"not valid JSON: {error}", where=file, remedy="the run is damaged: train again") from error
    if not isinstance(value, dict):
        raise RunError("not a JSON object", where=file, remedy="the run is damaged: train again")
    return value


def _read_lines(file: Path) -> list[dict[str, Any]]:
    """The events; a last line cut short by a kill is left out."""
    if not file.is_file():
        return []
    try:
        lines = file.read_text("utf-8").splitlines()
    except UnicodeDecodeError as error:
        raise RunError("not UTF-8 text", where=file, remedy="the run is damaged: train again") from error
    events = []
    for count, line in enumerate(lines, 1):
        try:
            events.append(json.loads(line))
        except (ValueError, RecursionError) as error:
            if count == len(lines):
                break
            raise RunError("not valid JSON", where=f"{file}:{count}", remedy="the run is damaged") from error
    return [event for event in events if isinstance(event, dict)]
