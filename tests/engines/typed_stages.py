"""A stage with a typed task, in a module that a worker can import."""

from __future__ import annotations

from dataclasses import dataclass

from tenor.engines.stage import JobStage


@dataclass(frozen=True)
class Number:
    value: int


@JobStage
def square(task: Number) -> Number:
    return Number(task.value**2)
