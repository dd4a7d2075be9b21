"""A table of finished runs from elsewhere: kinds of machines, how many, and how many seconds, as CSV or JSON."""

from __future__ import annotations

import csv
import io
from collections.abc import Mapping
from dataclasses import dataclass
from decimal import Decimal, InvalidOperation
from pathlib import Path
from typing import Any

from tenor.errors import UsageError
from tenor.planning.inputs.prices import MAX_NAME
from tenor.store.trusted import parse_json, read_bytes

MAX_BYTES = 16 << 20
MOST_RUNS = 2000  # every run is compared with every other one
SMALLEST, LARGEST = Decimal("1e-9"), Decimal(10**12)
REQUIRED = ("machine", "count", "seconds")
KNOWN = (*REQUIRED, "name", "dollars_per_hour", "accuracy")
_EXAMPLE = "machine,count,seconds\np2.xlarge,2,5400".replace("\n", " / ")


@dataclass(frozen=True)
class TableRun:
    """One run of the table."""

    machine: str
    count: int
    seconds: float
    name: str = ""
    dollars_per_hour: Decimal | None = None  # of one machine; None: as in the price file
    accuracy: float | None = None


def read_table(file: Path) -> list[TableRun]:
    """Read a table of runs.

    Args:
        file: CSV with a header line, or a JSON object whose `runs` is a list of objects. Columns are `machine`, `count`
            and `seconds`, and if wanted `name`, `dollars_per_hour` and `accuracy`.

    Raises:
        UsageError: The file cannot be read; the message names the line.
    """
    try:
        data = read_bytes(file.resolve(), MAX_BYTES, UsageError)
    except FileNotFoundError as error:
        raise UsageError("does not exist", where=file, remedy="give --from a table of runs") from error
    except IsADirectoryError as error:
        raise UsageError("is a folder", where=file, remedy="give --from a table of runs") from error
    rows = _from_json(data, file) if file.suffix == ".json" else _from_csv(data, file)
    runs = [_run(row, file, number) for number, row in rows[: MOST_RUNS + 1]]
    if len(runs) > MOST_RUNS:
        raise UsageError(f"has more than {MOST_RUNS:,} runs", where=file, remedy="leave some out")
    if not runs:
        raise UsageError("has no runs", where=file, remedy=f"write lines such as {_EXAMPLE}")
    return runs


def _from_csv(data: bytes, file: Path) -> list[tuple[int, Mapping[str, Any]]]:
    try:
        reader = csv.DictReader(io.StringIO(data.decode("utf-8-sig")), strict=True)
        rows = [(reader.line_num, row) for row in reader]
        names = reader.fieldnames or []
    except (UnicodeDecodeError, csv.Error) as error:
        raise UsageError(f"is not a CSV file: {error}", where=file, remedy="save it as CSV in UTF-8") from error
    if missing := [name for name in REQUIRED if name not in names]:
        remedy = f"begin the file with a line such as {','.join(REQUIRED)}"
        raise UsageError(f"has no column {missing[0]!r}", where=file, remedy=remedy)
    if unknown := [name for name in names if name not in KNOWN]:
        raise UsageError(f"has the unknown column {unknown[0]!r}", where=file, remedy=f"known are {', '.join(KNOWN)}")
    return [(number, {name: value for name, value in row.items() if value not in ("", None)}) for number, row in rows]


def _from_json(data: bytes, file: Path) -> list[tuple[int, Mapping[str, Any]]]:
    runs = parse_json(data, file, UsageError).get("runs")
    if not isinstance(runs, list) or not all(isinstance(run, dict) for run in runs):
        raise UsageError("has no list `runs` of objects", where=file, remedy='write {"runs": [{"machine": …}, …]}')
    for number, run in enumerate(runs, start=1):
        if unknown := [name for name in run if name not in KNOWN]:
            what = f"run {number} has the unknown key {unknown[0]!r:.40}"
            raise UsageError(what, where=file, remedy=f"known are {', '.join(KNOWN)}")
    return list(enumerate(runs, start=1))


def _run(row: Mapping[str, Any], file: Path, number: int) -> TableRun:
    def wrong(name: str, remedy: str) -> UsageError:
        found = f"{row[name]!r:.40}" if name in row else "missing"
        return UsageError(f"{name} is {found}", where=f"{file}:{number}", remedy=remedy)

    def decimal(name: str) -> Decimal:
        try:
            value = Decimal(str(row[name]))
        except (KeyError, InvalidOperation):
            value = Decimal("nan")
        if not value.is_finite() or not SMALLEST <= value <= LARGEST:
            raise wrong(name, "give a number above 0")
        return value

    machine, count = row.get("machine"), decimal("count")
    if not isinstance(machine, str) or not 0 < len(machine) <= MAX_NAME or not machine.isprintable():
        raise wrong("machine", "give the name of a machine")
    if count != int(count):
        raise wrong("count", "give a whole number of machines")
    price = decimal("dollars_per_hour") if "dollars_per_hour" in row else None
    accuracy = float(decimal("accuracy")) if "accuracy" in row else None
    if accuracy is not None and accuracy > 1:
        raise wrong("accuracy", "give a number from 0 to 1")
    return TableRun(machine, int(count), float(decimal("seconds")), str(row.get("name", "")), price, accuracy)
