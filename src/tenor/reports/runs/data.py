"""Reads a run folder for a report. Its files are not trusted: values may be missing, of a wrong type or not finite."""

from __future__ import annotations

import dataclasses
import json
from pathlib import Path
from typing import Any

from tenor.errors import RunError
from tenor.reports.runs.behaviour import BehaviourData, read_behaviour
from tenor.reports.runs.log import Log, read_log
from tenor.reports.runs.profile import Profile, read_profile
from tenor.reports.values import levels
from tenor.store.trusted import CONTAINERS, DEPTH, num_containers, read_bytes
from tenor.training.runs.config import read_config

MOST_BYTES = 16 << 20
NAME_LENGTH = 200
_REMEDY = "the run folder is damaged: restore the file, or train again"


@dataclasses.dataclass(frozen=True)
class RunData:
    """The JSON files of a run folder."""

    name: str
    config: dict[str, Any]
    environment: dict[str, Any]
    result: dict[str, Any]  # empty until the run has ended
    steps: list[dict[str, Any]]
    epochs: list[dict[str, Any]]
    notes: tuple[str, ...] = ()  # what could not be read
    profile: Profile | None = None
    behaviour: BehaviourData | None = None
    folder: Path | None = None

    @property
    def classes(self) -> list[str]:
        classes = self.config.get("classes")
        return [str(name)[:NAME_LENGTH] for name in classes] if isinstance(classes, list) else []

    def metrics(self, split: str) -> dict[str, Any]:
        """Return the metrics of `valid` or `test`. Before the run has ended, `valid` means those of the last epoch."""
        found = self.result.get(split)
        if not isinstance(found, dict) and split == "valid" and self.epochs:
            found = self.epochs[-1].get("valid")
        return found if isinstance(found, dict) else {}

    @property
    def split(self) -> str:
        """The split whose metrics count: `test`, or `valid` if the run was not measured on test rows."""
        return "test" if self.metrics("test") else "valid"

    @property
    def settings(self) -> dict[str, Any]:
        settings = self.config.get("settings")
        return settings if isinstance(settings, dict) else {}

    @property
    def machine(self) -> dict[str, Any]:
        machine = self.environment.get("machine")
        return machine if isinstance(machine, dict) else {}


def read_run(folder: Path, *, only_result: bool = False) -> RunData:
    """Read the files that `tenor train` wrote.

    Args:
        folder: The run folder.
        only_result: Whether to skip the log and the profile of a finished run.

    Raises:
        RunError: The folder is not a run folder, or a file is damaged.
    """
    config, result = read_config(folder), _read_object(folder / "result.json")
    is_short = only_result and bool(result)
    log = Log() if is_short else read_log(folder / "metrics.jsonl")
    return RunData(
        name=folder.resolve().name,
        config=config,
        environment=_read_object(folder / "environment.json"),
        result=result or log.end,
        steps=log.steps,
        epochs=log.epochs,
        notes=tuple(log.notes),
        profile=None if is_short else read_profile(folder),
        behaviour=None if is_short else read_behaviour(folder),
        folder=folder,
    )


def _read_object(file: Path) -> dict[str, Any]:
    try:
        data = read_bytes(file, MOST_BYTES, RunError)
        if num_containers(data) > CONTAINERS:
            raise ValueError("it has too many lists and objects")
        value = json.loads(data)
    except FileNotFoundError:
        return {}
    except (ValueError, RecursionError) as error:
        raise RunError(f"not valid JSON: {error}", where=file, remedy=_REMEDY) from error
    if not isinstance(value, dict):
        raise RunError("not a JSON object", where=file, remedy=_REMEDY)
    if levels(value, DEPTH) > DEPTH:
        raise RunError("the JSON is nested too deeply", where=file, remedy=_REMEDY)
    return value
