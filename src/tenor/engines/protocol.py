"""What every engine provides to a map-reduce job: each task of a stage is run, and its result comes back.

A stage is the name of a function, `module:function`. The function takes one task and returns one result, both JSON
objects. Data goes through files in a folder that every worker sees, each written under a temporary name and then
renamed. A task may therefore run twice, even on two workers at once, without harm.
"""

from __future__ import annotations

import importlib
import traceback
from collections.abc import Callable, Sequence
from typing import Protocol

from tenor.engines.records import Json
from tenor.errors import TenorError, WorkerError
from tenor.memory import keep_freed_memory

Done = Callable[[Json], object]  # called with a task's result

MAX_ATTEMPTS = 20  # per task, when the workers that run the task die


class Engine(Protocol):
    """Runs the tasks of one stage after another. `JobStage.run` is the typed way to use an engine."""

    name: str
    workers: int

    def run(self, stage: str, tasks: Sequence[Json], done: Done) -> list[Json]:
        """Run every task, in any order.

        Args:
            stage: The function to run, as `module:function`.
            tasks: One JSON object per call of the function.
            done: Is called with each result as soon as it arrives.

        Returns:
            The results in the order of the tasks.

        Raises:
            TenorError: A task raised one.
            OSError: A task raised one.
            WorkerError: A task raised any other exception, or its workers died too often.
        """
        ...

    def close(self) -> None:
        """End the workers that the engine started."""
        ...


def call(stage: str, task: Json) -> Json:
    """Run one task in this process."""
    keep_freed_memory()
    module, _, name = stage.partition(":")
    result: Json = getattr(importlib.import_module(module), name)(task)
    return result


def answer(stage: str, task: Json) -> Json:
    """Run one task; return its result or its error as a JSON object."""
    try:
        return {"result": call(stage, task)}
    except TenorError as error:
        return {"error": error.to_dict()}
    except OSError as error:
        return {"oserror": [error.errno, error.strerror or str(error), error.filename and str(error.filename)]}
    except Exception:
        return {"crash": traceback.format_exc()}


def unwrap(reply: Json) -> Json:
    """Return the result in a worker's reply, or raise the error in it."""
    if "result" in reply:
        result: Json = reply["result"]
        return result
    if "error" in reply:
        raise TenorError.from_dict(reply["error"])
    if "oserror" in reply:
        raise OSError(*reply["oserror"])
    raise WorkerError(f"a worker failed:\n{reply['crash']}", remedy="this is a bug in Tenor: please report it")


def too_many_deaths(stage: str, last: str) -> WorkerError:
    """The error for a task that is given up; `last` says how its last worker died."""
    return WorkerError(
        f"{MAX_ATTEMPTS} workers died while they ran the same task of {stage}; the last one: {last}",
        remedy="check whether the kernel's out-of-memory killer ended them (dmesg), or use fewer workers",
    )
