"""The interface through which library functions report progress, and the choice of what draws it."""

from __future__ import annotations

import sys
from typing import Protocol, TypeAlias


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

Shown: TypeAlias = Progress | bool | None  # what a Python caller passes as `progress`


def shown(progress: Shown) -> Progress:
    """What draws the progress of a public function.

    Args:
        progress: An object that draws; True to show progress, False to show none. None shows it in notebooks only.
    """
    if progress is None:
        progress = in_notebook()
    if not isinstance(progress, bool):
        return progress
    if not progress:
        return SILENT
    if in_notebook():
        from tenor.progress.notebook import Notebook

        return Notebook()
    return terminal_bar() if sys.stderr.isatty() else _lines()


def in_notebook() -> bool:
    """Whether this is the kernel of a Jupyter notebook or of a similar program."""
    module = sys.modules.get("IPython")  # never imported for this question
    shell = module.get_ipython() if module is not None and hasattr(module, "get_ipython") else None
    return shell is not None and getattr(shell, "kernel", None) is not None


def terminal_bar() -> Progress:
    """A bar on the terminal."""
    from tenor.progress.bar import Bar

    return Bar()


def _lines() -> Progress:
    from tenor.progress.lines import Lines, visible

    return Lines(lambda line: print(visible(line), file=sys.stderr, flush=True))
