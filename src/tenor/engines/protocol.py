"""What a map-reduce job asks of the place where it runs.

A task is a JSON object, a stage the dotted name of a function that takes it and gives back a JSON object. Data goes
through files in a folder that every worker sees, each written under a temporary name and then renamed: a task may be
run twice, by two workers at once, without harm. So an engine has one duty: see that every task is done.
"""

from __future__ import annotations

import importlib
import traceback
from collections.abc import Callable, Sequence
from typing import Any, Protocol

from tenor import errors
from tenor.errors import TenorError, WorkerError
from tenor.memory import keep_freed_memory

Task = dict[str, Any]
Done = Callable[[Task], None]

MAX_ATTEMPTS = 20  # of one task whose workers die


class Engine(Protocol):
    name: str
    workers: int

    def run(self, stage: str, tasks: Sequence[Task], done: Done) -> list[Task]:
        """Do every task, in any order; results in the order of the tasks. `done` hears each result as it comes."""
        ...

    def close(self) -> None: ...


def call(stage: str, task: Task) -> Task:
    """Run one task here."""
    keep_freed_memory()
    module, _, name = stage.partition(":")
    result: Task = getattr(importlib.import_module(module), name)(task)
    return result


def answer(stage: str, task: Task) -> Task:
    """Run one task and say how it went, in words that any transport can carry."""
    try:
        return {"result": call(stage, task)}
    except TenorError as error:
        kind = type(error).__name__
        return {"error": {"kind": kind, "what": error.what, "where": error.where, "remedy": error.remedy}}
    except OSError as error:
        return {"oserror": [error.errno, error.strerror or str(error), error.filename and str(error.filename)]}
    except Exception:
        return {"crash": traceback.format_exc()}


def unwrap(reply: Task) -> Task:
    """A worker's result, or its error raised here."""
    if "result" in reply:
        result: Task = reply["result"]
        return result
    if "error" in reply:
        told = reply["error"]
        kind: type[TenorError] = getattr(errors, told["kind"])
        error = kind.__new__(kind)
        TenorError.__init__(error, told["what"], where=told["where"], remedy=told["remedy"])
        raise error
    if "oserror" in reply:
        raise OSError(*reply["oserror"])
    raise WorkerError(f"a worker failed:\n{reply['crash']}", remedy="this is a fault of ours: please report it")


def too_many_deaths(stage: str, told: str) -> WorkerError:
    return WorkerError(
        f"workers died {MAX_ATTEMPTS} times at one task of {stage}; the last one: {told}",
        remedy="look for the kernel's out-of-memory killer, or use fewer workers",
    )
