"""Values from untrusted files: whether they are numbers, how deeply they nest, and how they can be drawn."""

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


def tick(name: str, most: int = 18) -> str:
    """Return a label of at most `most` characters for a plot.

    Without escapes, matplotlib would read text between dollar signs as mathematics.
    """
    name = readable(name)
    return (name if len(name) <= most else f"{name[: most - 1]}…").replace("$", r"\$")


def left_out(count: int, most: int, things: str) -> str:
    """Return a sentence, after a space, about what a plot leaves out; empty if it shows everything."""
    return f" Only the first {most} of {count:,} {things} are shown." if count > most else ""


def counted(count: float, thing: str) -> str:
    """Return a number with its noun, such as `1 worker` or `2 workers`."""
    return f"{count:,g} {thing}{'' if count == 1 else 's'}"


def sentence(words: str) -> str:
    """Return the words with a capital first letter and a full stop."""
    return f"{words[:1].upper()}{words[1:]}." if words else ""
