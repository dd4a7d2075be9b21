"""Progress below a cell of a notebook: one bar that is drawn again in its place, and lines of text."""

from __future__ import annotations

import html
import time
from datetime import timedelta
from typing import Any

from tenor.progress import Silent
from tenor.progress.lines import rate

SECONDS_BETWEEN_DRAWINGS = 0.2


class Notebook(Silent):
    """Shows one bar at a time. It needs IPython, which every notebook has, and no widgets."""

    def __init__(self) -> None:
        self._handle: Any = None

    def start(self, stage: str, total: float | None, unit: str) -> None:
        self.finish()
        self.stage, self.total, self.unit = stage, total, unit
        self.done, self.note = 0.0, ""
        self.began = self.drawn = time.monotonic()
        from IPython.display import HTML, display

        self._make = HTML
        self._handle = display(HTML(self.html()), display_id=True)

    def advance(self, amount: float, note: str = "") -> None:
        if self._handle is None:
            return
        self.done, self.note = self.done + amount, note
        if (now := time.monotonic()) - self.drawn >= SECONDS_BETWEEN_DRAWINGS:
            self.drawn = now
            self._handle.update(self._make(self.html()))

    def finish(self) -> None:
        if self._handle is not None:
            self._handle.update(self._make(self.html(is_over=True)))
            self._handle = None

    def say(self, line: str) -> None:
        print(line, flush=True)

    def html(self, is_over: bool = False) -> str:
        """The stage, the share done, the rate and the time left."""
        spent = time.monotonic() - self.began
        speed = self.done / spent if spent > 0 else 0.0
        words = [self.stage, rate(speed, self.unit) if self.done else "", _time(spent)]
        if not is_over and self.total and speed:
            words.append(f"{_time(max(0.0, self.total - self.done) / speed)} left")
        text = " · ".join(html.escape(word) for word in [*words, self.note] if word)
        share = f' value="{min(self.done, self.total):g}" max="{self.total:g}"' if self.total else ""
        return text if is_over else f"<progress{share}></progress> {text}"


def _time(seconds: float) -> str:
    return str(timedelta(seconds=round(seconds)))
