"""What a person or a script sees: results on standard output, everything else on standard error."""

from __future__ import annotations

import json as jsonlib
import sys
from collections.abc import Sequence
from typing import Any

from tenor.progress import Progress, Silent


class Console:
    """Printing for one command. With `json`, standard output carries one JSON object and nothing else."""

    def __init__(self, json: bool = False, debug: bool = False) -> None:
        self.json = json
        self.debug = debug

    def result(self, values: dict[str, Any], human: str | None = None) -> None:
        """Print the command's answer: the object itself, or its words for a person (default: `name value` lines)."""
        if self.json:
            print(jsonlib.dumps(values), flush=True)
            return
        print(human if human is not None else lines(values), flush=True)

    def say(self, line: str) -> None:
        print(line, file=sys.stderr, flush=True)

    def error(self, message: str) -> None:
        self.say(f"tenor: {' '.join(message.split())}")

    def progress(self) -> Progress:
        """A bar on a terminal; in a pipe only the lines said, with `json` only warnings among them."""
        if not sys.stderr.isatty():
            return Lines(self) if not self.json else Warnings(self)
        from tenor.cli.bar import Bar

        return Bar()


class Lines(Silent):
    """Progress without a terminal: what is said, no bars."""

    def __init__(self, console: Console) -> None:
        self.console = console

    def say(self, line: str) -> None:
        self.console.say(line)


class Warnings(Silent):
    """Progress for a script: warnings only."""

    def __init__(self, console: Console) -> None:
        self.console = console

    def warn(self, line: str) -> None:
        self.console.say(line)


def lines(values: dict[str, Any]) -> str:
    """`name  value` lines, aligned; floats short."""
    width = max(map(len, values), default=0)
    return "\n".join(f"{name:<{width}}  {_short(value)}" for name, value in values.items())


def table(head: Sequence[str], rows: Sequence[Sequence[Any]]) -> str:
    """A plain table: words to the left, numbers to the right."""
    cells = [[_short(value) for value in row] for row in rows]
    widths = [max([len(title), *(len(row[i]) for row in cells)]) for i, title in enumerate(head)]
    right = [
        bool(rows) and all(isinstance(row[i], int | float) or row[i] is None for row in rows) for i in range(len(head))
    ]

    def draw(row: Sequence[str]) -> str:
        parts = [f"{c:>{w}}" if r else f"{c:<{w}}" for c, w, r in zip(row, widths, right, strict=True)]
        return "  ".join(parts).rstrip()

    return "\n".join([draw(list(head)), "  ".join("─" * w for w in widths), *map(draw, cells)])


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
