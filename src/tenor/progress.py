"""How long work tells whoever started it how far it is. The library calls; the command line draws."""

from __future__ import annotations

from typing import Protocol


class Progress(Protocol):
    """One bar at a time: `start` a stage, `advance` it, `finish` it; `say` prints a line above the bar, and `warn` one
    that is wanted even by those who want no others."""

    def start(self, stage: str, total: float | None, unit: str) -> None: ...

    def advance(self, amount: float, note: str = "") -> None: ...

    def finish(self) -> None: ...

    def say(self, line: str) -> None: ...

    def warn(self, line: str) -> None: ...


class Silent:
    """The null case: nobody is looking."""

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
