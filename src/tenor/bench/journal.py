"""The journal of a measurement: the figures of each finished run, so that a stopped measurement can continue.

The file has one JSON object per line. The first line says what is measured and where; a measurement continues only if
both are the same. Each other line is a finished run: its figures, and its learning curve if it has one. A line that was
not written to its end is ignored.
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Protocol

from tenor.bench.results import machine_of, refuse_other_machine
from tenor.environment import describe
from tenor.errors import UsageError
from tenor.store.strict import strict_json
from tenor.store.trusted import read_bytes

FORMAT = 1
MAX_BYTES = 64 << 20

Figures = dict[str, float]
Curve = dict[str, list[float]]  # accuracy and seconds after each epoch


class Journal(Protocol):
    """What a measurement needs to continue."""

    def past(self, turn: int, name: str) -> Figures | None:
        """The figures of a run that finished before the measurement was stopped; None if it has to run."""

    def add(self, name: str, figures: Figures) -> Figures:
        """Keep the figures of a run that has just finished, and return them."""


class NoJournal:
    """Keeps nothing: a stopped measurement starts again."""

    def past(self, turn: int, name: str) -> Figures | None:
        return None

    def add(self, name: str, figures: Figures) -> Figures:
        return figures


NO_JOURNAL = NoJournal()


class FileJournal:
    """Keeps the runs in a file.

    Args:
        file: The file, which is created if it does not exist.
        subject: What is measured: the scenario and its settings.

    Attributes:
        curves: The learning curve of the last run of each contender. A run sets its curve before it is added.

    Raises:
        UsageError: The file is damaged, or belongs to another measurement, machine or version.
    """

    def __init__(self, file: Path, subject: Mapping[str, Any]) -> None:
        self.file = file
        environment = describe()
        self.head: dict[str, Any] = {"format": FORMAT, "subject": dict(subject), "environment": environment}
        self.entries: list[tuple[str, Figures]] = []
        self.curves: dict[str, Curve] = {}
        lines = _whole_lines(file)
        if lines:
            self._check_head(_parse(lines[0], file, 1))
            for number, line in enumerate(lines[1:], start=2):
                name, figures, curve = _entry(_parse(line, file, number), file)
                self.entries.append((name, figures))
                self.curves |= {name: curve} if curve else {}
            _rewrite(file, lines)
        else:
            _rewrite(file, [strict_json(self.head).encode()])

    def _check_head(self, head: Mapping[str, Any]) -> None:
        remedy = f"give the options that it began with, or remove {self.file}"
        if head.get("format") != FORMAT:
            what = f"has format {head.get('format')!r:.40}, but this version reads {FORMAT}"
            raise UsageError(what, where=self.file, remedy=f"remove {self.file}")
        began, now = head.get("subject"), self.head["subject"]
        if not isinstance(began, dict):
            raise _damaged(self.file, 1)
        for name in {**began, **now}:
            if began.get(name) != now.get(name):
                what = f"belongs to a measurement with {name} {began.get(name)!r:.60}, not {now.get(name)!r:.60}"
                raise UsageError(what, where=self.file, remedy=remedy)
        environment = head.get("environment")
        if not isinstance(environment, dict) or not machine_of(environment):
            raise _damaged(self.file, 1)
        refuse_other_machine(self.file, environment, "this one", self.head["environment"])
        if environment.get("versions") != self.head["environment"]["versions"]:
            what = "was begun with other versions of Tenor or its libraries"
            raise UsageError(what, where=self.file, remedy=f"remove {self.file} and measure again")

    def count(self, name: str) -> int:
        """The number of finished runs of one contender."""
        return sum(one == name for one, _ in self.entries)

    def past(self, turn: int, name: str) -> Figures | None:
        if turn >= len(self.entries):
            return None
        found, figures = self.entries[turn]
        if found != name:
            raise _damaged(self.file, turn + 2)
        return figures

    def add(self, name: str, figures: Figures) -> Figures:
        curve = {"curve": self.curves[name]} if name in self.curves else {}
        line = strict_json({"name": name, "figures": figures, **curve})
        with self.file.open("a", encoding="utf-8") as stream:
            stream.write(line + "\n")
            stream.flush()
            os.fsync(stream.fileno())
        self.entries.append((name, figures))
        return figures


def _whole_lines(file: Path) -> list[bytes]:
    try:
        *lines, _ = read_bytes(file, MAX_BYTES, UsageError).split(b"\n")
    except FileNotFoundError:
        return []
    return lines


def _rewrite(file: Path, lines: list[bytes]) -> None:
    """Write whole lines only, so that the next line does not follow a part of one."""
    file.write_bytes(b"".join(line + b"\n" for line in lines))


def _parse(line: bytes, file: Path, number: int) -> dict[str, Any]:
    try:
        value = json.loads(line)
    except (ValueError, RecursionError):
        value = None
    if not isinstance(value, dict):
        raise _damaged(file, number)
    return value


def _entry(value: Mapping[str, Any], file: Path) -> tuple[str, Figures, Curve]:
    name, figures = value.get("name"), value.get("figures")
    if not isinstance(name, str) or not isinstance(figures, dict):
        raise _damaged(file, 0)
    known = {key: float("inf") if number is None else number for key, number in figures.items()}
    curve = value.get("curve", {})
    if not isinstance(curve, dict) or not all(isinstance(points, list) for points in curve.values()):
        raise _damaged(file, 0)
    if not all(map(_is_number, [*known.values(), *(point for points in curve.values() for point in points)])):
        raise _damaged(file, 0)
    return name, known, curve


def _is_number(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _damaged(file: Path, number: int) -> UsageError:
    where = f" in line {number}" if number else ""
    return UsageError(f"is not the journal of a measurement{where}", where=file, remedy=f"remove {file}")
