"""The result of a benchmark, the form of its file, and checks of result files that come from elsewhere.

    {"format": 1, "scenario": …, "command": …, "environment": {"date": …, "machine": {…}, "versions": {…}, "commit": …},
     "rows": [{"name": …, facts…, figures… (medians), "repeats": n, "spread": {figure: {…}}}, …],
     "notes": [sentences for the reader, …]}

A row may also hold a "curve" with one value per epoch. A figure that could not be measured is null. Files from before
the format number have no "format" and no "command", and are read as format 1.
"""

from __future__ import annotations

import dataclasses
import os
from collections.abc import Mapping
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
        values = read_json(Path(os.path.realpath(file)), MAX_BYTES, UsageError)  # follows links, even circular ones
    except OSError as error:
        raise UsageError(f"cannot be read: {error.strerror}", where=file, remedy=f"give {kind}") from error
    if (found := values.get("format", 1)) != known or isinstance(found, bool):
        raise UsageError(f"has format {found!r:.40}, but this version reads {known}", where=file, remedy=_AGAIN)
    return values


def damaged(file: Path, why: str) -> UsageError:
    """The error for a result file with a wrong content."""
    return UsageError(f"is not a result of Tenor: {why}", where=file, remedy="measure again")


def machine_of(environment: Mapping[str, Any]) -> dict[str, Any]:
    """What identifies a machine, from the environment of a result; empty if the result does not say."""
    machine = environment.get("machine")
    found = {name: machine.get(name) for name in _MACHINE} if isinstance(machine, dict) else {}
    return found if any(value is not None for value in found.values()) else {}


def describe_machine(environment: Mapping[str, Any]) -> str:
    """A machine in a few words, such as `AMD EPYC, 2 cores, 23.4 GiB`."""
    machine = machine_of(environment)
    if not machine:
        return "an unknown machine"
    return f"{machine['processor']}, {machine['cores']} cores, {machine['memory_gib']} GiB"


def refuse_other_machine(file: Path, environment: Mapping[str, Any], other: str, expected: Mapping[str, Any]) -> None:
    """Raise UsageError if two environments name different machines, or do not say which machine was measured.

    Args:
        file: Where the first environment comes from.
        environment: The first environment.
        other: Where the second one comes from, for the message.
        expected: The second environment.
    """
    unknown = [where for where, one in ((file, environment), (other, expected)) if not machine_of(one)]
    if unknown:
        what, remedy = "does not say on which machine it was measured", "compare speeds of one machine only"
        raise UsageError(what, where=unknown[0], remedy=remedy)
    if machine_of(environment) != machine_of(expected):
        was, now = describe_machine(environment), describe_machine(expected)
        what = f"was measured on another machine ({was}) than {other} ({now})"
        raise UsageError(what, where=file, remedy="compare speeds of one machine only: measure again on this one")
