"""Reads the behaviour.json of a run, which `tenor evaluate --behaviour` writes. The file is not trusted."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tenor.errors import RunError
from tenor.evaluation.behaviour.judge import FORMAT, PassCount
from tenor.reports.values import number, readable
from tenor.store.trusted import read_json

MOST_BYTES = 4 << 20
MOST_KINDS = 60
MOST_FAILED = 2000
_REMEDY = "remove the file, or run `tenor evaluate --behaviour` again"


@dataclass(frozen=True)
class FailedCase:
    """A behaviour test that failed, as words for a table."""

    kind: str
    expected: str
    texts: str
    found: str  # labels and probabilities of positive


@dataclass(frozen=True)
class BehaviourData:
    """How many behaviour tests a run passed."""

    kinds: dict[str, PassCount]
    failed: list[FailedCase]

    @property
    def all_but_hard(self) -> PassCount:
        """The counts over all kinds that are not hard."""
        fair = [count for count in self.kinds.values() if not count.hard]
        return PassCount(sum(count.passed for count in fair), sum(count.cases for count in fair))


def read_behaviour(folder: Path) -> BehaviourData | None:
    """Read the behaviour tests of a run; None if they have not been run.

    Raises:
        RunError: The file is damaged or of another format.
    """
    path = folder / "behaviour.json"
    try:
        values = read_json(path, MOST_BYTES, RunError)
    except FileNotFoundError:
        return None
    if values.get("format") != FORMAT or isinstance(values.get("format"), bool):
        what = f"has format {values.get('format')!r:.40}, but this version reads {FORMAT}"
        raise RunError(what, where=path, remedy=_REMEDY)
    try:
        kinds = {_words(name, 60): _count(count) for name, count in list(values["kinds"].items())[:MOST_KINDS]}
        return BehaviourData(kinds, [_case(case) for case in values["failed"][:MOST_FAILED]])
    except (TypeError, ValueError, KeyError, AttributeError):
        raise RunError("is not a result of behaviour tests", where=path, remedy=_REMEDY) from None


def _count(values: Mapping[str, Any]) -> PassCount:
    passed, cases = values["passed"], values["cases"]
    if type(passed) is not int or type(cases) is not int or not 0 <= passed <= cases or cases < 1:
        raise ValueError("not a count")
    return PassCount(passed, cases, values["hard"] is True)


def _case(values: Mapping[str, Any]) -> FailedCase:
    answers = zip(values["labels"], values["probabilities"], strict=True)
    found = ", ".join(f"{_words(label, 20)} ({_probability(chance):.2f})" for label, chance in answers)
    texts = " → ".join(_words(text, 300) for text in values["texts"][:2])
    return FailedCase(_words(values["kind"], 60), _words(values["expected"], 20), texts, found)


def _words(value: Any, most: int) -> str:
    if not isinstance(value, str):
        raise TypeError("not a text")
    return readable(value)[:most]


def _probability(value: Any) -> float:
    found = number(value)
    if found is None or not 0 <= found <= 1:
        raise ValueError("not a probability")
    return found
