"""Progress as lines of text, for output that is not a terminal."""

from __future__ import annotations

import re
import time
from collections.abc import Callable
from datetime import timedelta

from tenor.progress import Silent

SECONDS_BETWEEN_LINES = 30.0
_CONTROL = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f]")  # all but tab and newline
_SCALE = ((1e9, "G"), (1e6, "M"), (1e3, "k"))


def visible(text: str) -> str:
    r"""The text with control characters spelt out: names in a stranger's file must not command the terminal.

    >>> visible("a\x1b[31m")
    'a\\x1b[31m'
    """
    return _CONTROL.sub(lambda found: f"\\x{ord(found[0]):02x}", text)


class Lines(Silent):
    """Progress without a terminal: messages, and a line about the progress of long work twice per minute."""

    def __init__(self, say: Callable[[str], None]) -> None:
        self._say = say
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
        self._say(line)


class Warnings(Silent):
    """Progress that is only warnings, for scripts that read the result."""

    def __init__(self, say: Callable[[str], None]) -> None:
        self._say = say

    def warn(self, line: str) -> None:
        self._say(line)


def rate(speed: float, unit: str) -> str:
    """Amount per second, such as `1.2 MB/s`."""
    size, prefix = next(((s, p) for s, p in _SCALE if speed >= s), (1.0, ""))
    shown = f"{speed / size:.1f}" if speed >= 1 else f"{speed:.2g}"
    return f"{shown} {prefix}{unit}/s"
