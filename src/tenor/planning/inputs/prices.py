"""Prices of machines: a TOML file that the user can replace, and dollars to the cent."""

from __future__ import annotations

from dataclasses import dataclass
from decimal import ROUND_HALF_UP, Decimal, DecimalException
from importlib import resources
from pathlib import Path
from typing import Any

from tenor.bench.network.spec import NetworkSpec, parse_network
from tenor.errors import UsageError
from tenor.toml import read_toml

CENT = Decimal("0.01")
MAX_NAME = 100  # characters of the name of a machine
SMALLEST, LARGEST = Decimal("1e-9"), Decimal(10**9)  # numbers of an entry, besides 0
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
        with resources.as_file(resources.files("tenor.planning.inputs").joinpath("prices.toml")) as own:
            return read_prices(own)
    try:
        entries = read_toml(file, Decimal)
    except FileNotFoundError as error:
        raise UsageError("does not exist", where=file, remedy="give --prices a TOML file") from error
    except OSError as error:
        what = f"cannot be read: {error.strerror}"
        raise UsageError(what, where=file, remedy="give --prices a TOML file") from error
    except DecimalException as error:
        raise UsageError("has a number that is too large", where=file, remedy="correct the file") from error
    found = {name: _machine(name, entry, file) for name, entry in entries.items()}
    if not found:
        raise UsageError("has no machine", where=file, remedy='add a table such as ["c5.large"]')
    return found


def _machine(name: str, entry: Any, file: Path) -> Machine:
    if not name.isprintable() or not 0 < len(name) <= MAX_NAME:
        remedy = f"give it 1 to {MAX_NAME} printable characters"
        raise UsageError(f"{name!r:.60} cannot be the name of a machine", where=file, remedy=remedy)
    if not isinstance(entry, dict) or any(isinstance(value, dict) for value in entry.values()):
        remedy = f'write the name of a machine in quotes, such as ["{name}"]'
        raise UsageError(f"{name!r} is not a table with prices", where=file, remedy=remedy)
    for key, value in entry.items():
        if key not in _FIELDS:
            known = ", ".join(_FIELDS)
            raise UsageError(f"{name} has the unknown key {key!r}", where=file, remedy=f"known keys are {known}")
        kinds = (*_FIELDS[key], Decimal) if float in _FIELDS[key] else _FIELDS[key]
        if not isinstance(value, kinds) or not _is_reasonable(value):
            raise UsageError(f"{name}: {key} cannot be {value!r:.60}", where=file, remedy="give a number of at least 0")
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


def _is_reasonable(value: object) -> bool:
    """Whether a value is a text, or a number with which a plan can be computed."""
    if isinstance(value, Decimal) and not value.is_finite():
        return False
    if isinstance(value, int | Decimal):
        return not isinstance(value, bool) and (value == 0 or SMALLEST <= value <= LARGEST)
    return True


def find_machine(prices: dict[str, Machine], name: str) -> Machine:
    """The machine of that name.

    Raises:
        UsageError: The price file does not have it.
    """
    if name not in prices:
        remedy = f"choose one of {', '.join(prices)}, or add it to a file and give --prices"
        raise UsageError(f"no price is known for the machine {name!r}", remedy=remedy)
    return prices[name]
