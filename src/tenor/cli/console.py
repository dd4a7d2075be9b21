"""Printing: results go to standard output, everything else to standard error."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import Any

from tenor.progress import Progress, terminal_bar
from tenor.progress.lines import Lines, Warnings, visible
from tenor.store.strict import strict_json


class Console:
    """Prints for one command. With `json`, standard output has one JSON object and nothing else."""

    def __init__(self, json: bool = False, debug: bool = False) -> None:
        self.json = json
        self.debug = debug

    def result(self, values: dict[str, Any], human: str | None = None) -> None:
        """Print the result of a command: with `json` the values, else the text `human` or `name value` lines."""
        if self.json:
            print(strict_json(values), flush=True)
            return
        print(visible(human if human is not None else lines(values)), flush=True)

    def say(self, line: str) -> None:
        print(visible(line), file=sys.stderr, flush=True)

    def error(self, message: str) -> None:
        self.say(f"tenor: {' '.join(message.split())}")

    def progress(self) -> Progress:
        """A bar on a terminal. In a pipe or a file: lines, and with `json` only warnings."""
        if not sys.stderr.isatty():
            return Lines(self.say) if not self.json else Warnings(self.say)
        return terminal_bar()


def lines(values: dict[str, Any]) -> str:
    """Aligned `name  value` lines with short numbers."""
    width = max(map(len, values), default=0)
    return "\n".join(f"{name:<{width}}  {_short(value)}" for name, value in values.items())


def table(head: Sequence[str], rows: Sequence[Sequence[Any]], decimals: int | None = None) -> str:
    """A plain table with words aligned left and numbers aligned right.

    Args:
        head: The titles of the columns. If all of them are empty, the table has no head.
        rows: The values, row by row.
        decimals: Digits after the point of every float; None shortens each float by itself.
    """
    fixed = "" if decimals is None else f".{decimals}f"
    cells = [[f"{v:{fixed}}" if fixed and isinstance(v, float) else _short(v) for v in row] for row in rows]
    widths = [max([len(title), *(len(row[i]) for row in cells)]) for i, title in enumerate(head)]
    right = [
        bool(rows) and all(isinstance(row[i], int | float) or row[i] is None for row in rows) for i in range(len(head))
    ]

    def draw(row: Sequence[str]) -> str:
        parts = [f"{c:>{w}}" if r else f"{c:<{w}}" for c, w, r in zip(row, widths, right, strict=True)]
        return "  ".join(parts).rstrip()

    titles = [draw(list(head)), "  ".join("─" * w for w in widths)] if any(head) else []
    return "\n".join([*titles, *map(draw, cells)])


def _short(value: Any) -> str:
    if value is None:
        return "–"
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, int):
        return f"{value:,}"
    if isinstance(value, float):
        return f"{value:,.0f}" if abs(value) >= 1000 else f"{value:.4g}"
    if isinstance(value, dict):
        return ", ".join(f"{k} {_short(v)}" for k, v in value.items()) or "–"
    return str(value)
