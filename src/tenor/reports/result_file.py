"""Reads the result files of `tenor bench --out` and `tenor plan`. The files are not trusted.

A result is a JSON object with the `format` number, `rows`, and the name of its `scenario`; the result of `tenor plan`
has the scenario `plan`. It may have an `environment`, `notes` for the reader, and the `command` that made it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from tenor.bench.results import FORMAT, read_checked, refuse_other_machine
from tenor.bench.scaling_figures import add_scaling, join_bases
from tenor.bench.scaling_tables import BASE, STRONG, UNTIL, WEAK
from tenor.errors import UsageError
from tenor.reports.values import number, readable

MOST_ROWS = 20_000
_WANTED = "a run folder, or a file written by `tenor bench --out` or `tenor plan --out`"
_REMEDY = f"give {_WANTED}"

Row = dict[str, Any]


@dataclass(frozen=True)
class ResultData:
    """One result of `bench` or `plan`."""

    scenario: str
    rows: list[Row]
    environment: dict[str, Any] = field(default_factory=dict)
    notes: tuple[str, ...] = ()
    command: str = ""
    file: Path | None = None
    details: Mapping[str, Any] = field(default_factory=dict)  # everything in the file, for scenarios with more

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
    return parse_result(read_checked(file, _WANTED, FORMAT), file)


def parse_result(values: Mapping[str, Any], file: Path | None = None) -> ResultData:
    """Check the values of a result file; `file` is named in errors."""
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
        file=file,
        details=values,
    )


def join_scaling(results: Sequence[ResultData]) -> list[ResultData]:
    """Join the results of scaling experiments, so that their speed-ups have one base; other results stay apart.

    Raises:
        UsageError: They come from different machines, between which a speed-up means nothing.
    """
    some = [result for result in results if is_scaling(result)]
    if len(some) < 2:
        return list(results)
    first = some[0]
    for other in some[1:]:
        refuse_other_machine(other.file or Path("result"), other.environment, str(first.file), first.environment)
    rows = join_bases([dict(row) for result in some for row in result.rows])
    add_scaling(rows)
    notes = tuple(dict.fromkeys(note for result in some for note in result.notes))
    joined = replace(first, rows=rows, notes=notes, command="; ".join(result.command for result in some))
    return [joined if result is first else result for result in results if result is first or result not in some]


def is_scaling(result: ResultData) -> bool:
    """Whether every row has what a scaling experiment measures, in the right types."""
    return result.scenario == "scaling" and all(
        isinstance(row.get("name"), str)
        and isinstance(row.get("stage"), str)
        and row.get("kind") in (BASE, STRONG, WEAK, UNTIL)
        and isinstance(row.get("strategy"), str | None)
        and type(row.get("workers")) is int
        and row["workers"] > 0
        and isinstance(row.get("spread"), dict)
        and _has_rates(row)
        for row in result.rows
    )


def _has_rates(row: Row) -> bool:
    found = row["spread"].get("samples_per_s")
    values = found.get("values") if isinstance(found, dict) else None
    return isinstance(values, list) and bool(values) and all((number(value) or 0.0) > 0 for value in values)
