"""What a map-reduce job asks of the place where it runs.

A task is a JSON object, a stage the dotted name of a function that takes it and gives back a JSON object. Data goes
through files in a folder that every worker sees, each written under a temporary name and then renamed: a task may be
run twice, by two workers at once, without harm. So an engine has one duty: see that every task is done.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable, Sequence
from typing import Any, Protocol

Task = dict[str, Any]
Done = Callable[[Task], None]


class Engine(Protocol):
    name: str
    workers: int

    def run(self, stage: str, tasks: Sequence[Task], done: Done) -> list[Task]:
        """Do every task, in any order; results in the order of the tasks. `done` hears each result as it comes."""
        ...

    def close(self) -> None: ...


def call(stage: str, task: Task) -> Task:
    """Run one task here."""
    module, _, name = stage.partition(":")
    result: Task = getattr(importlib.import_module(module), name)(task)
    return result
