"""Checks on values from untrusted files: whether they are numbers, how deeply they nest, and what can be drawn."""

from __future__ import annotations

from typing import Any

LARGEST = 1e18  # no figure of a run is larger, and larger numbers overflow in drawings


def number(value: Any) -> float | None:
    """Return the value as a float if it is a number that can be drawn, otherwise None."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    return float(value) if abs(value) <= LARGEST else None


def numbers(values: Any) -> bool:
    """Return whether the value is a list that contains only numbers."""
    return isinstance(values, list) and None not in map(number, values)


def levels(value: Any, most: int) -> int:
    """Return how deeply lists and objects are nested; counting stops above `most`."""
    level, count = [value], 0
    while count <= most:
        level = [inner for item in level for inner in _inside(item)]
        if not level:
            return count
        count += 1
    return count


def _inside(item: Any) -> list[Any]:
    return list(item.values()) if isinstance(item, dict) else item if isinstance(item, list) else []


def readable(text: str) -> str:
    """Return the text on one line, without control characters and lone surrogates, which cannot be drawn."""
    whole = text.encode("utf-8", "replace").decode("utf-8")
    return " ".join("".join(c if c.isprintable() else " " for c in whole).split())
