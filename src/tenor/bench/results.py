"""The result file of a benchmark: its form, and how a file from elsewhere is read and checked.

    {"format": 1, "scenario": …, "command": …, "environment": {"date": …, "machine": {…}, "versions": {…}, "commit": …},
     "rows": [{"name": …, facts…, figures… (medians), "repeats": n, "spread": {figure: {…}}}, …],
     "notes": [sentences for the reader, …]}

A row may also hold a "curve" with one value per epoch. A figure that could not be measured is null. Files from before
the format number have no "format" and no "command", and are read as format 1.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from tenor.errors import UsageError
from tenor.store.trusted import read_json

FORMAT = 1
MAX_BYTES = 64 << 20
_AGAIN = "measure again with this version of Tenor, or use the version that wrote the file"
_MACHINE = ("processor", "cores", "architecture", "memory_gib")  # what makes two machines the same for a speed-up


@dataclasses.dataclass(frozen=True)
class Result:
    """The rows that a scenario measured, and the environment in which it ran."""

    scenario: str
    environment: dict[str, Any]
    rows: list[dict[str, Any]]
    notes: list[str] = dataclasses.field(default_factory=list)
    command: str = ""

    def as_dict(self) -> dict[str, Any]:
        head = {"format": FORMAT, "scenario": self.scenario, "command": self.command}
        return {**head, "environment": self.environment, "rows": self.rows, "notes": self.notes}


def read_result(file: Path, scenario: str | None = None) -> Result:
    """Read a result file and check its form.

    Args:
        file: The JSON file that `tenor bench … --out` wrote.
        scenario: The scenario that the result must belong to; None for any.

    Raises:
        UsageError: The file is damaged, of another version, or the result of another scenario.
    """
    values = read_checked(file, "a benchmark result", FORMAT)
    result = _parse(values, file)
    if scenario is not None and result.scenario != scenario:
        what = f"is a result of the scenario {result.scenario:.40}, not of {scenario}"
        raise UsageError(what, where=file, remedy=f"give a file written by `tenor bench {scenario} --out`")
    return result


def read_checked(file: Path, kind: str, known: int) -> dict[str, Any]:
    """The JSON object in a result file whose format is known.

    Args:
        file: The file.
        kind: What the file should be, for messages.
        known: The format that this version reads; a file without a number has format 1.

    Raises:
        UsageError: The file cannot be read, is not JSON, or has another format.
    """
    try:
        values = read_json(file.resolve(), MAX_BYTES, UsageError)
    except FileNotFoundError as error:
        raise UsageError("does not exist", where=file, remedy=f"give {kind}") from error
    except IsADirectoryError as error:
        raise UsageError("is a folder, not a file", where=file, remedy=f"give {kind}") from error
    if (found := values.get("format", 1)) != known or isinstance(found, bool):
        raise UsageError(f"has format {found!r:.40}, but this version reads {known}", where=file, remedy=_AGAIN)
    return values


def _parse(values: Mapping[str, Any], file: Path) -> Result:
    scenario, environment, rows = (values.get(name) for name in ("scenario", "environment", "rows"))
    if not isinstance(scenario, str) or not isinstance(environment, dict) or not isinstance(rows, list):
        raise damaged(file, "it needs a scenario, an environment and rows")
    for number, row in enumerate(rows, start=1):
        if not isinstance(row, dict) or not isinstance(row.get("name"), str):
            raise damaged(file, f"row {number} has no name")
        if not isinstance(row.get("spread", {}), dict):
            raise damaged(file, f"the spread of row {number} is not an object")
        row.setdefault("spread", {})
        row.setdefault("repeats", 1)
    notes, command = values.get("notes", []), values.get("command", "")
    if not isinstance(notes, list) or not all(isinstance(note, str) for note in notes) or not isinstance(command, str):
        raise damaged(file, "its notes or its command are not text")
    return Result(scenario, environment, rows, notes, command)


def damaged(file: Path, why: str) -> UsageError:
    """The error for a result file with a wrong content."""
    return UsageError(f"is not a result of Tenor: {why}", where=file, remedy="measure again")


def machine_of(environment: Mapping[str, Any]) -> dict[str, Any]:
    """What identifies a machine, from the environment of a result; empty if the result does not say."""
    machine = environment.get("machine")
    return {name: machine.get(name) for name in _MACHINE} if isinstance(machine, dict) else {}


def describe_machine(environment: Mapping[str, Any]) -> str:
    """A machine in a few words, such as `AMD EPYC, 2 cores, 23.4 GiB`."""
    machine = machine_of(environment)
    if not machine:
        return "an unknown machine"
    return f"{machine['processor']}, {machine['cores']} cores, {machine['memory_gib']} GiB"


def join_results(results: Mapping[Path, Result]) -> Result:
    """The rows of several results of one scenario as one result, so that their speeds can be compared.

    Raises:
        UsageError: The results come from different machines or scenarios: a speed-up between them means nothing.
    """
    (first_file, first), *rest = results.items()
    rows, notes = list(first.rows), list(first.notes)
    for file, result in rest:
        if result.scenario != first.scenario:
            what = f"is a result of the scenario {result.scenario:.40}, but {first_file} of {first.scenario:.40}"
            raise UsageError(what, where=file, remedy="compare results of one scenario")
        refuse_other_machine(file, result.environment, str(first_file), first.environment)
        rows += result.rows
        notes += [note for note in result.notes if note not in notes]
    return dataclasses.replace(first, rows=_distinct(rows), notes=notes)


def refuse_other_machine(file: Path, environment: Mapping[str, Any], other: str, expected: Mapping[str, Any]) -> None:
    """Raise UsageError if two environments name different machines.

    Args:
        file: Where the first environment comes from.
        environment: The first environment.
        other: Where the second one comes from, for the message.
        expected: The second environment.
    """
    if machine_of(environment) != machine_of(expected):
        was, now = describe_machine(environment), describe_machine(expected)
        what = f"was measured on another machine ({was}) than {other} ({now})"
        raise UsageError(what, where=file, remedy="compare speeds of one machine only: measure again on this one")


def _distinct(rows: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    """The rows without repeated names; of two rows with one name, the first."""
    return list({row["name"]: row for row in reversed(rows)}.values())[::-1]
