"""How workers agree: one file a strategy behind one protocol."""

from __future__ import annotations

from collections.abc import Callable

from tenor.errors import UsageError
from tenor.settings import refuse_others
from tenor.training.compression import Compression, make_compression
from tenor.training.settings import TrainSettings
from tenor.training.strategies.allreduce import AllReduce
from tenor.training.strategies.asynchronous import Asynchronous
from tenor.training.strategies.base import Strategy, SyncStats
from tenor.training.strategies.diloco import DiLoCo
from tenor.training.strategies.hogwild import Hogwild, shared_memory
from tenor.training.strategies.local_sgd import LocalSGD
from tenor.training.strategies.model_parallel import ModelParallel, check_depth
from tenor.training.strategies.single import Single
from tenor.world import World

STRATEGIES: dict[str, Callable[[TrainSettings, World], Strategy]] = {
    "single": lambda settings, world: Single(),
    "allreduce": lambda settings, world: AllReduce(_compression(settings)),
    "local-sgd": lambda settings, world: LocalSGD(settings.sync_every),
    "diloco": lambda settings, world: DiLoCo(settings.sync_every, settings.outer_lr, settings.outer_momentum),
    "hogwild": lambda settings, world: Hogwild(settings.sync_every, shared_memory(world)),
    "model-parallel": lambda settings, world: ModelParallel(world.size),
    "hybrid": lambda settings, world: ModelParallel(check_depth(settings.model_parallel, world.size)),
    "async": lambda settings, world: (  # a worker alone is its own server, and never late
        Asynchronous(settings, world, _compression(settings)) if world.size > 1 else Single()
    ),
}
BALANCED = ("single", "allreduce")  # those whose workers do the same work and agree in every step
SPLIT = ("model-parallel", "hybrid")

__all__ = [
    "BALANCED",
    "STRATEGIES",
    "AllReduce",
    "Asynchronous",
    "DiLoCo",
    "Hogwild",
    "LocalSGD",
    "ModelParallel",
    "Single",
    "Strategy",
    "SyncStats",
    "make_strategy",
    "strategy_name",
]


def _compression(settings: TrainSettings) -> Compression:
    return make_compression(settings.compress, settings.top_k, settings.batch_size)


def strategy_name(settings: TrainSettings, size: int) -> str:
    """`auto` is `single` for one worker and `allreduce` for more."""
    if settings.strategy != "auto":
        return settings.strategy
    return "allreduce" if size > 1 else "single"


def make_strategy(settings: TrainSettings, world: World) -> Strategy:
    """The strategy that the settings name."""
    name, size = strategy_name(settings, world.size), world.size
    if name == "single" and size > 1:
        raise UsageError(f"--strategy single with {size} workers", remedy="use --workers 1, or another strategy")
    refuse_others(settings, name, "--strategy {}")
    if name not in BALANCED and settings.balance != "off":
        fixed = "" if name == "async" else f", or fixed --shares with {name}"
        remedy = f"use --strategy allreduce{fixed}"
        raise UsageError(f"--balance {settings.balance} with --strategy {name}", remedy=remedy)
    if name in SPLIT and settings.precision == "bf16":
        raise UsageError(f"--precision bf16 with --strategy {name}", remedy="use --precision fp32")
    if name == "async" and (settings.shares or settings.token_caps):
        remedy = "leave them away: leases follow the workers' speeds by themselves"
        raise UsageError("--shares or --token-caps with --strategy async", remedy=remedy)
    return STRATEGIES[name](settings, world)
