"""Reads the profile.json of a run, which `tenor train --profile` writes. The file is not trusted."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tenor.errors import RunError
from tenor.reports.values import number, readable
from tenor.store.trusted import read_json
from tenor.training.profiling.summary import FORMAT

MOST_BYTES = 16 << 20
MOST_SPANS = 20_000
_REMEDY = "remove the file, or train again with --profile"


@dataclass(frozen=True)
class TimelineSpan:
    """One worker did one part of a step from `start` to `end`, in seconds."""

    worker: int
    part: str
    start: float
    end: float


@dataclass(frozen=True)
class WorkerParts:
    """The mean seconds that a worker spends on each part of a step."""

    name: str
    seconds: dict[str, float]


@dataclass(frozen=True)
class Profile:
    """Where the steps of a run went."""

    first: int  # step
    last: int
    workers: list[WorkerParts]
    spans: list[TimelineSpan]  # of a few steps

    @property
    def names(self) -> list[str]:
        return [worker.name for worker in self.workers]


def read_profile(folder: Path) -> Profile | None:
    """Read the profile of a run; None if it has none.

    Raises:
        RunError: The file is damaged or of another format.
    """
    path = folder / "profile.json"
    try:
        values = read_json(path, MOST_BYTES, RunError)
    except FileNotFoundError:
        return None
    if values.get("format") != FORMAT:
        what = f"has format {values.get('format')!r:.40}, but this version reads {FORMAT}"
        raise RunError(what, where=path, remedy=_REMEDY)
    try:
        return _parse(values)
    except (TypeError, ValueError, KeyError, AttributeError):
        raise RunError("is not a profile", where=path, remedy=_REMEDY) from None


def _parse(values: Mapping[str, Any]) -> Profile:
    workers = [
        WorkerParts(readable(str(worker["name"]))[:60], {str(k)[:40]: _size(v) for k, v in worker["seconds"].items()})
        for worker in _list(values["workers"])
    ]
    names = [str(name)[:40] for name in _list(values["parts"])]
    spans = [
        TimelineSpan(_index(worker, len(workers)), names[_index(part, len(names))], _size(start), _size(end))
        for worker, part, start, end in _list(values["timeline"])[:MOST_SPANS]
    ]
    return Profile(int(_size(values["first_step"])), int(_size(values["last_step"])), workers, spans)


def _list(value: Any) -> list[Any]:
    if not isinstance(value, list):
        raise TypeError("not a list")
    return value


def _size(value: Any) -> float:
    found = number(value)
    if found is None or found < 0:
        raise ValueError("not a size")
    return found


def _index(value: Any, count: int) -> int:
    if type(value) is not int or not 0 <= value < count:
        raise ValueError("not an index")
    return value
