"""Model parallelism and data parallelism together: rows of ranks hold one model each and share the global batch.

A row computes as in `model-parallel`; the ranks that hold the same part of the model add up their gradients over the
rows. Use it when there are more workers than a model has stages.
"""

from __future__ import annotations

from tenor.errors import UsageError
from tenor.training.settings import TrainSettings
from tenor.training.strategies.base import Strategy
from tenor.training.strategies.model_parallel import ModelParallel
from tenor.world import World


class Hybrid(ModelParallel):
    @classmethod
    def make(cls, settings: TrainSettings, world: World) -> Strategy:
        return cls(check_depth(settings.model_parallel, world.size))


def check_depth(depth: int, size: int) -> int:
    """The number of ranks per row. A single worker is a row of its own."""
    if size % depth and size > 1:
        remedy = f"give a multiple of {depth} workers, or another --model-parallel"
        raise UsageError(
            f"--strategy hybrid cannot divide {size} workers into models of --model-parallel {depth}", remedy=remedy
        )
    return min(depth, size)
