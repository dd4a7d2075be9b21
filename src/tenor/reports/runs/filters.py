"""Conditions such as `cell=gru,workers>1` on the figures and settings of runs, and sorting by them."""

from __future__ import annotations

import operator
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

from tenor.errors import UsageError
from tenor.settings import wrong_value

_FORM = re.compile(r"\s*([A-Za-z][\w-]*)\s*(<=|>=|!=|=|<|>)\s*(.*?)\s*")
_ORDER: dict[str, Callable[[float, float], bool]] = {
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
}
_WORDS = {"true": True, "yes": True, "false": False, "no": False}

T = TypeVar("T")
Values = Mapping[str, Any]


@dataclass(frozen=True)
class Condition:
    """One comparison of a figure or setting with a value."""

    name: str
    sign: str
    value: str

    def holds(self, values: Values) -> bool:
        found, wanted = values.get(self.name), _as_number(self.value)
        if self.sign in _ORDER:
            number = _as_number(found)
            return number is not None and wanted is not None and _ORDER[self.sign](number, wanted)
        return self._equals(found, wanted) == (self.sign == "=")

    def _equals(self, found: Any, wanted: float | None) -> bool:
        if isinstance(found, bool):
            return found == _WORDS.get(self.value.lower())
        number = _as_number(found)
        if number is not None and wanted is not None:
            return number == wanted
        return ("" if found is None else str(found)) == self.value


def parse_conditions(text: str) -> list[Condition]:
    """Parse `--where`; the dashes of option names may be used."""
    conditions = []
    for part in filter(str.strip, text.split(",")):
        found = _FORM.fullmatch(part)
        if not found or (found[2] in _ORDER and _as_number(found[3]) is None):
            remedy = "give name=value, name!=value, or name<number with <, <=, > or >=, separated by commas"
            raise wrong_value("where", repr(part.strip()), remedy)
        conditions.append(Condition(found[1].replace("-", "_"), found[2], found[3]))
    return conditions


def select(items: Sequence[T], values_of: Callable[[T], Values], where: str) -> list[T]:
    """Return the items that fulfil all conditions."""
    conditions = parse_conditions(where)
    for condition in conditions:
        check_name(condition.name, [values_of(item) for item in items], "--where")
    return [item for item in items if all(condition.holds(values_of(item)) for condition in conditions)]


def sort_by(items: Sequence[T], values_of: Callable[[T], Values], key: str) -> list[T]:
    """Return the items by rising value, or falling if `key` starts with a minus; those without a value come last."""
    name, is_down = key.removeprefix("-").replace("-", "_"), key.startswith("-")
    check_name(name, [values_of(item) for item in items], "--sort")
    known = [item for item in items if values_of(item).get(name) is not None]
    rest = [item for item in items if values_of(item).get(name) is None]
    return [*sorted(known, key=lambda item: _rank(values_of(item)[name]), reverse=is_down), *rest]


def check_name(name: str, every: Sequence[Values], option: str) -> None:
    """Raise UsageError if there are runs, and none of them has a figure or setting of this name."""
    if every and not any(name in values for values in every):
        names = sorted({known for values in every for known in values})
        shown = ", ".join(names[:60]) + (", …" if len(names) > 60 else "")
        raise UsageError(f"{option} names {name!r:.60}, which no run has", remedy=f"choose among {shown}")


def _rank(value: Any) -> tuple[int, float, str]:
    number = _as_number(value)
    return (0, number, "") if number is not None else (1, 0.0, str(value))


def _as_number(value: Any) -> float | None:
    if isinstance(value, bool) or not isinstance(value, int | float | str):
        return None
    try:
        return float(value)
    except (ValueError, OverflowError):
        return None
