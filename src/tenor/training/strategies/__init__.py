"""How workers agree: one file a strategy behind one protocol."""

from __future__ import annotations

from collections.abc import Callable

from tenor.errors import UsageError
from tenor.training.compression import Compression, make_compression
from tenor.training.settings import TrainSettings
from tenor.training.strategies.allreduce import AllReduce
from tenor.training.strategies.asynchronous import Asynchronous
from tenor.training.strategies.base import Strategy, SyncStats
from tenor.training.strategies.diloco import DiLoCo
from tenor.training.strategies.hogwild import Hogwild, shared_memory
from tenor.training.strategies.local_sgd import LocalSGD
from tenor.training.strategies.single import Single
from tenor.world import World

STRATEGIES: dict[str, Callable[[TrainSettings, World], Strategy]] = {
    "single": lambda settings, world: Single(),
    "allreduce": lambda settings, world: AllReduce(_compression(settings)),
    "local-sgd": lambda settings, world: LocalSGD(settings.sync_every),
    "diloco": lambda settings, world: DiLoCo(settings.sync_every, settings.outer_lr, settings.outer_momentum),
    "hogwild": lambda settings, world: Hogwild(settings.sync_every, shared_memory(world)),
    "async": lambda settings, world: (  # a worker alone is its own server, and never late
        Asynchronous(settings, world, _compression(settings)) if world.size > 1 else Single()
    ),
}
IN_STEP = ("single", "allreduce")  # those whose workers agree in every step

__all__ = [
    "STRATEGIES",
    "AllReduce",
    "Asynchronous",
    "DiLoCo",
    "Hogwild",
    "LocalSGD",
    "Single",
    "Strategy",
    "SyncStats",
    "make_strategy",
]


def _compression(settings: TrainSettings) -> Compression:
    return make_compression(settings.compress, settings.top_k, settings.batch_size)


def make_strategy(settings: TrainSettings, world: World) -> Strategy:
    """The strategy that the settings name; `auto` is `single` for one worker and `allreduce` for more."""
    name, size = settings.strategy, world.size
    if name == "auto":
        name = "allreduce" if size > 1 else "single"
    if name == "single" and size > 1:
        raise UsageError(f"--strategy single with {size} workers", remedy="use --workers 1, or another strategy")
    if settings.compress != "none" and name not in ("allreduce", "async"):
        remedy = "use --strategy allreduce or async with two workers or more, or leave --compress away"
        raise UsageError(f"--compress {settings.compress} with --strategy {name}", remedy=remedy)
    if name not in IN_STEP and settings.balance != "off":
        remedy = f"use --strategy allreduce, or fixed --shares with {name}"
        raise UsageError(f"--balance {settings.balance} with --strategy {name}, whose workers go apart", remedy=remedy)
    if name == "async" and (settings.shares or settings.token_caps):
        remedy = "leave them away: leases follow the workers' speeds by themselves"
        raise UsageError("--shares or --token-caps with --strategy async", remedy=remedy)
    return STRATEGIES[name](settings, world)
