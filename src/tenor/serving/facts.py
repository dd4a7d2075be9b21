"""What the page shows about a run: its model card, its metrics with the reliability curve, and its behaviour tests.

The files may come from a stranger: each value is checked, and what cannot be read is left out.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from pathlib import Path
from typing import Any, TypeAlias

from tenor.errors import RunError
from tenor.store.trusted import read_bytes, read_json

RunFacts: TypeAlias = dict[str, Any]
_MOST_BYTES = 4 << 20
_MOST_CARD = 100_000  # characters
_MOST_ROWS = 200  # bins or kinds of tests
_METRICS = ("accuracy", "f1_macro", "f1_weighted", "auc", "calibration_error", "rows")
_BIN = ("low", "high", "rows", "probability", "share")


def read_facts(folder: Path) -> RunFacts:
    """The facts of a run folder as JSON values; None for what it does not have."""
    result = _object(folder / "result.json")
    split = "test" if isinstance(result.get("test"), dict) and result["test"] else "valid"
    return {
        "card": _card(folder / "README.md"),
        "metrics": _metrics(result.get(split), split),
        "behaviour": _behaviour(_object(folder / "behaviour.json").get("kinds")),
    }


def _object(file: Path) -> dict[str, Any]:
    try:
        return read_json(file, _MOST_BYTES, RunError)
    except (RunError, OSError):
        return {}


def _card(file: Path) -> str | None:
    try:
        return read_bytes(file, _MOST_BYTES, RunError).decode("utf-8", "replace")[:_MOST_CARD]
    except (RunError, OSError):
        return None


def _metrics(found: Any, split: str) -> RunFacts | None:
    if not isinstance(found, Mapping):
        return None
    majority = found.get("majority_baseline")
    bins = found.get("reliability")
    return {
        "split": split,
        **{name: _number(found.get(name)) for name in _METRICS},
        "majority_accuracy": _number(majority.get("accuracy")) if isinstance(majority, Mapping) else None,
        "reliability": [kept for one in bins[:_MOST_ROWS] if (kept := _bin(one))] if isinstance(bins, list) else [],
    }


def _bin(found: Any) -> dict[str, float] | None:
    if not isinstance(found, Mapping):
        return None
    values = {name: _number(found.get(name)) for name in _BIN}
    return {name: value for name, value in values.items() if value is not None} if None not in values.values() else None


def _behaviour(kinds: Any) -> dict[str, RunFacts] | None:
    """Passed and total cases of each kind of behaviour test."""
    if not isinstance(kinds, Mapping):
        return None
    found = {}
    for name, value in list(kinds.items())[:_MOST_ROWS]:
        passed, cases = (
            (_number(value.get(key)) for key in ("passed", "cases")) if isinstance(value, Mapping) else (0, 0)
        )
        if passed is not None and cases and 0 <= passed <= cases:
            found[str(name)[:200]] = {"passed": passed, "cases": cases, "hard": value.get("hard") is True}
    return found or None


def _number(value: Any) -> float | None:
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    return value if is_number and math.isfinite(value) else None
