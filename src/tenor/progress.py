"""The interface through which library functions report progress; the command line draws it."""

from __future__ import annotations

from typing import Protocol


class Progress(Protocol):
    """Shows one progress bar at a time: `start` a stage, `advance` it, `finish` it.

    `say` prints a line above the bar. `warn` prints a line that must appear even if other lines are suppressed.
    """

    def start(self, stage: str, total: float | None, unit: str) -> None: ...

    def advance(self, amount: float, note: str = "") -> None: ...

    def finish(self) -> None: ...

    def say(self, line: str) -> None: ...

    def warn(self, line: str) -> None: ...


class Silent:
    """Shows nothing."""

    def start(self, stage: str, total: float | None, unit: str) -> None:
        pass

    def advance(self, amount: float, note: str = "") -> None:
        pass

    def finish(self) -> None:
        pass

    def say(self, line: str) -> None:
        pass

    def warn(self, line: str) -> None:
        self.say(line)


SILENT: Progress = Silent()
