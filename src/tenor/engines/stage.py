"""A stage of a job: one function with a typed task and a typed result, run once per task by an engine."""

from __future__ import annotations

import functools
import typing
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

from tenor.engines.protocol import Engine
from tenor.engines.records import Json, from_json, to_json

T = TypeVar("T")
R = TypeVar("R")


@dataclass(frozen=True)
class Empty:
    """A task or a result without values."""


class JobStage(Generic[T, R]):
    """Turns a function of one record into a stage that any engine can run.

    Used as a decorator of a function in a module. A worker imports the module and finds the stage by its name, so only
    the name and the task travel, never code.

    >>> @JobStage  # doctest: +SKIP
    ... def count_words(task: CountTask) -> CountResult: ...
    >>> results = count_words.run(engine, tasks)  # doctest: +SKIP
    """

    def __init__(self, function: Callable[[T], R]) -> None:
        self.function = function
        self.name = f"{function.__module__}:{function.__name__}"

    def run(self, engine: Engine, tasks: Sequence[T], done: Callable[[R], object] = lambda result: None) -> list[R]:
        """Run every task on the engine.

        Args:
            engine: Where the tasks run.
            tasks: One record per call of the function.
            done: Is called with each result as soon as it arrives, in any order.

        Returns:
            The results in the order of the tasks.
        """
        _, result_type = self._types
        results = engine.run(
            self.name, [to_json(task) for task in tasks], lambda values: done(from_json(result_type, values))
        )
        return [from_json(result_type, values) for values in results]

    def __call__(self, task: Json) -> Json:
        """Run one task here, as a worker does: its record and its result are JSON objects."""
        task_type, _ = self._types
        return to_json(self.function(from_json(task_type, task)))

    @functools.cached_property
    def _types(self) -> tuple[type[Any], type[Any]]:
        """The classes of the task and of the result, from the function's annotations."""
        hints = typing.get_type_hints(self.function)
        result = hints.pop("return")
        [task] = hints.values()
        return task, result
