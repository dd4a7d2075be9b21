"""Printing: results go to standard output, everything else to standard error."""

from __future__ import annotations

import re
import sys
import time
from collections.abc import Sequence
from datetime import timedelta
from typing import Any

from tenor.progress import Progress, Silent
from tenor.store.strict import strict_json

SECONDS_BETWEEN_LINES = 30.0  # of progress without a terminal
_CONTROL = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f]")  # all but tab and newline
_SCALE = ((1e9, "G"), (1e6, "M"), (1e3, "k"))


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
            return Lines(self) if not self.json else Warnings(self)
        from tenor.cli.bar import Bar

        return Bar()


def visible(text: str) -> str:
    """The text with control characters spelt out: names in a stranger's file must not command the terminal.

    >>> visible("a\x1b[31m")
    'a\\x1b[31m'
    """
    return _CONTROL.sub(lambda found: f"\\x{ord(found[0]):02x}", text)


class Lines(Silent):
    """Progress without a terminal: messages, and a line about the progress of long work twice per minute."""

    def __init__(self, console: Console) -> None:
        self.console = console
        self.start("", None, "")

    def start(self, stage: str, total: float | None, unit: str) -> None:
        self.stage, self.total, self.unit = stage, total, unit
        self.done, self.began = 0.0, time.monotonic()
        self.last = self.began

    def advance(self, amount: float, note: str = "") -> None:
        self.done += amount
        now = time.monotonic()
        if now - self.last < SECONDS_BETWEEN_LINES:
            return
        self.last = now
        speed = self.done / (now - self.began)
        parts = [self.stage, rate(speed, self.unit)]
        if self.total and speed:
            left = timedelta(seconds=round(max(0.0, self.total - self.done) / speed))
            parts[1:1] = [f"{self.done / self.total:.0%}", f"{left} left"]
        self.say("  ".join(filter(None, [*parts, note])))

    def say(self, line: str) -> None:
        self.console.say(line)


class Warnings(Silent):
    """Progress for a script: only warnings."""

    def __init__(self, console: Console) -> None:
        self.console = console

    def warn(self, line: str) -> None:
        self.console.say(line)


def rate(speed: float, unit: str) -> str:
    """Amount per second, such as `1.2 MB/s`."""
    size, prefix = next(((s, p) for s, p in _SCALE if speed >= s), (1.0, ""))
    shown = f"{speed / size:.1f}" if speed >= 1 else f"{speed:.2g}"
    return f"{shown} {prefix}{unit}/s"


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
