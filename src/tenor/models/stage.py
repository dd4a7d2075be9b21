"""A model as stages, one after another, that can be computed apart. Who computes which is not the model's business."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Protocol

from torch import Tensor, nn

from tenor.models.batch import Batch


@dataclass(frozen=True)
class Stage:
    """From what the stage before gave (the first one: from the batch's tokens) to what the next one takes."""

    modules: tuple[nn.Module, ...]  # whose weights it uses, and no other stage does
    compute: Callable[[Tensor, Batch], Tensor]
    shape: Callable[[Batch], tuple[int, ...]]  # of what it gives


class Staged(Protocol):
    def stages(self) -> list[Stage]: ...


def run_stages(stages: Sequence[Stage], states: Tensor, batch: Batch) -> Tensor:
    for stage in stages:
        states = stage.compute(states, batch)
    return states
