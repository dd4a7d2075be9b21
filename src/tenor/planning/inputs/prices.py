"""Prices of machines: a TOML file that the user can replace, and dollars to the cent."""

from __future__ import annotations

import math
import tomllib
from dataclasses import dataclass
from decimal import ROUND_HALF_UP, Decimal
from importlib import resources
from pathlib import Path
from typing import Any

from tenor.bench.network.spec import NetworkSpec, parse_network
from tenor.errors import UsageError
from tenor.store.trusted import read_bytes

MAX_BYTES = 1 << 20
CENT = Decimal("0.01")
_FIELDS: dict[str, tuple[type, ...]] = {
    "dollars_per_hour": (float, int),
    "cores": (int,),
    "gpus": (int,),
    "memory_gib": (float, int),
    "network": (str,),
}


@dataclass(frozen=True)
class Machine:
    """A kind of machine that can be rented."""

    name: str
    dollars_per_hour: Decimal
    cores: int
    gpus: int = 0
    memory_gib: float = 0.0
    network: NetworkSpec | None = None

    def dollars(self, count: int, seconds: float) -> Decimal:
        """What `count` machines cost for some seconds, exactly: count × price × seconds / 3600."""
        return count * self.dollars_per_hour * Decimal(repr(float(seconds))) / 3600


def to_cents(dollars: Decimal) -> Decimal:
    """Round to cents, half a cent up, as a bill does.

    >>> to_cents(Decimal("1.125"))
    Decimal('1.13')
    """
    return dollars.quantize(CENT, ROUND_HALF_UP)


def read_prices(file: Path | None) -> dict[str, Machine]:
    """The machines of a price file by name; without a file, those that come with Tenor.

    Raises:
        UsageError: The file cannot be read, or an entry is wrong.
    """
    if file is None:
        text = resources.files("tenor.planning.inputs").joinpath("prices.toml").read_text("utf-8")
        return _parse(text, Path("prices.toml"))
    try:
        text = read_bytes(file.resolve(), MAX_BYTES, UsageError).decode("utf-8")
    except FileNotFoundError as error:
        raise UsageError("does not exist", where=file, remedy="give --prices a TOML file") from error
    except UnicodeDecodeError as error:
        raise UsageError("is not UTF-8 text", where=file, remedy="give --prices a TOML file") from error
    return _parse(text, file)


def _parse(text: str, file: Path) -> dict[str, Machine]:
    try:
        entries = tomllib.loads(text, parse_float=Decimal)
    except tomllib.TOMLDecodeError as error:
        raise UsageError(f"is not valid TOML: {error}", where=file, remedy="correct the file") from error
    found = {name: _machine(name, entry, file) for name, entry in entries.items()}
    if not found:
        raise UsageError("has no machine", where=file, remedy='add a table such as ["c5.large"]')
    return found


def _machine(name: str, entry: Any, file: Path) -> Machine:
    if not isinstance(entry, dict) or any(isinstance(value, dict) for value in entry.values()):
        remedy = f'write the name of a machine in quotes, such as ["{name}"]'
        raise UsageError(f"{name!r} is not a table with prices", where=file, remedy=remedy)
    for key, value in entry.items():
        if key not in _FIELDS:
            known = ", ".join(_FIELDS)
            raise UsageError(f"{name} has the unknown key {key!r}", where=file, remedy=f"known keys are {known}")
        kinds = (*_FIELDS[key], Decimal) if float in _FIELDS[key] else _FIELDS[key]
        is_negative = isinstance(value, int | float | Decimal) and (not math.isfinite(value) or value < 0)
        if not isinstance(value, kinds) or isinstance(value, bool) or is_negative:
            raise UsageError(f"{name}: {key} cannot be {value!r}", where=file, remedy="give a number of at least 0")
    if "dollars_per_hour" not in entry:
        raise UsageError(f"{name} has no dollars_per_hour", where=file, remedy="add it")
    return Machine(
        name,
        Decimal(entry["dollars_per_hour"]),
        max(1, entry.get("cores", 1)),
        entry.get("gpus", 0),
        float(entry.get("memory_gib", 0)),
        parse_network(entry["network"], "prices") if "network" in entry else None,
    )


def find_machine(prices: dict[str, Machine], name: str) -> Machine:
    """The machine of that name.

    Raises:
        UsageError: The price file does not have it.
    """
    if name not in prices:
        remedy = f"choose one of {', '.join(prices)}, or add it to a file and give --prices"
        raise UsageError(f"no price is known for the machine {name!r}", remedy=remedy)
    return prices[name]
