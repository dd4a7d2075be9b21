"""Reads the result files of `tenor bench --out` and `tenor plan`. The files are not trusted.

A result is a JSON object with the `format` number, `rows`, and the name of its `scenario`; the result of `tenor plan`
has the scenario `plan`. It may have an `environment`, `notes` for the reader, and the `command` that made it.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tenor.bench.measuring import FORMAT
from tenor.errors import UsageError
from tenor.reports.values import number, readable
from tenor.store.trusted import read_json

MAX_BYTES = 64 << 20
MOST_ROWS = 20_000
_REMEDY = "give a run folder, or a file written by `tenor bench --out` or `tenor plan --out`"

Row = dict[str, Any]


@dataclass(frozen=True)
class ResultData:
    """One result of `bench` or `plan`."""

    scenario: str
    rows: list[Row]
    environment: dict[str, Any] = field(default_factory=dict)
    notes: tuple[str, ...] = ()
    command: str = ""

    @property
    def cores(self) -> float | None:
        """The cores of the machine that was measured, if the file says so."""
        machine = self.environment.get("machine")
        return number(machine.get("cores")) if isinstance(machine, dict) else None


def read_result(file: Path) -> ResultData:
    """Read a result file.

    Raises:
        UsageError: The file is damaged, of another version, or something else.
    """
    try:
        values = read_json(Path(os.path.realpath(file)), MAX_BYTES, UsageError)  # follows links, even circular ones
    except OSError as error:
        raise UsageError(f"cannot be read: {error.strerror}", where=file, remedy=_REMEDY) from error
    return parse_result(values, file)


def parse_result(values: Mapping[str, Any], file: Path | None = None) -> ResultData:
    """Check the values of a result file; `file` is named in errors."""
    found = values.get("format", FORMAT)  # the first results have no number
    if found != FORMAT or isinstance(found, bool):
        remedy = "use the version of Tenor that wrote the file, or measure again"
        raise UsageError(f"has format {found!r:.40}, but this version reads {FORMAT}", where=file, remedy=remedy)
    scenario, rows = values.get("scenario"), values.get("rows")
    if not isinstance(scenario, str) or not isinstance(rows, list):
        raise UsageError("is not the result of a benchmark or a plan", where=file, remedy=_REMEDY)
    kept = [row for row in rows[:MOST_ROWS] if isinstance(row, dict)]
    if not kept:
        raise UsageError(f"is a result of {readable(scenario)[:40]} without rows", where=file, remedy=_REMEDY)
    environment, notes, command = values.get("environment"), values.get("notes"), values.get("command")
    return ResultData(
        scenario=readable(scenario)[:40],
        rows=kept,
        environment=environment if isinstance(environment, dict) else {},
        notes=tuple(str(note) for note in notes) if isinstance(notes, list) else (),
        command=command if isinstance(command, str) else "",
    )
