"""The progress bar on a terminal: stage, share done, rate and time left."""

from __future__ import annotations

from rich.console import Console as RichConsole
from rich.progress import (
    BarColumn,
    Progress,
    ProgressColumn,
    Task,
    TextColumn,
    TimeElapsedColumn,
    TimeRemainingColumn,
)
from rich.table import Column
from rich.text import Text

from tenor.progress.lines import rate, visible


class _Rate(ProgressColumn):
    """Amount per second, in the unit of the stage."""

    def render(self, task: Task) -> Text:
        return Text(rate(task.finished_speed or task.speed or 0.0, task.fields["unit"]))


class Bar:
    """Shows one bar at a time on standard error."""

    def __init__(self) -> None:
        self._progress: Progress | None = None
        self._console = RichConsole(stderr=True)

    def start(self, stage: str, total: float | None, unit: str) -> None:
        self.finish()
        columns = (
            TextColumn("{task.description}"),
            BarColumn(),
            *(kind(table_column=Column(no_wrap=True)) for kind in (_Rate, TimeElapsedColumn, TimeRemainingColumn)),
        )  # only the bar shrinks to make room for the note on a narrow terminal
        self._progress = Progress(*columns, TextColumn("{task.fields[note]}"), console=self._console, transient=True)
        self._progress.add_task(stage, total=total, unit=unit, note="")
        self._progress.start()

    def advance(self, amount: float, note: str = "") -> None:
        if self._progress is not None:
            self._progress.update(self._progress.task_ids[0], advance=amount, note=note)

    def finish(self) -> None:
        if self._progress is not None:
            self._progress.stop()
            self._progress = None

    def say(self, line: str) -> None:
        self._console.print(visible(line), markup=False, highlight=False)

    def warn(self, line: str) -> None:
        self.say(line)
