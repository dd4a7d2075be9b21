"""How workers agree on an update: one file per strategy, listed in `tenor.training.traits`."""

from __future__ import annotations

import pkgutil

from tenor.errors import UsageError
from tenor.settings import changed, refuse_others
from tenor.training.settings import TrainSettings
from tenor.training.strategies.base import Strategy
from tenor.training.traits import STRATEGIES, Refusal, StrategyTraits, strategy_name
from tenor.world import World

__all__ = ["Strategy", "make_strategy"]


def make_strategy(settings: TrainSettings, world: World) -> Strategy:
    """The strategy that the settings name, for one rank of the world.

    Raises:
        UsageError: The strategy cannot honour one of the settings, or takes no second worker.
    """
    name = strategy_name(settings.strategy, world.size)
    traits = STRATEGIES[name]
    if traits.is_for_one and world.size > 1:
        what = f"--strategy {name} takes one worker, not {world.size}"
        raise UsageError(what, remedy="use --workers 1, or another strategy")
    refuse_others(settings, name, "--strategy {}")
    _refuse_balance(settings, name, traits)
    for refusal in traits.refuses:
        _refuse(settings, name, refusal)
    implementation: type[Strategy] = pkgutil.resolve_name(traits.implementation)
    return implementation.make(settings, world)


def _refuse_balance(settings: TrainSettings, name: str, traits: StrategyTraits) -> None:
    if settings.balance == "off" or traits.is_balanced:
        return
    takes_shares = all(refusal.setting != "shares" for refusal in traits.refuses)
    remedy = "use --strategy allreduce" + (f", or fixed --shares with {name}" if takes_shares else "")
    raise UsageError(f"--balance {settings.balance} cannot be combined with --strategy {name}", remedy=remedy)


def _refuse(settings: TrainSettings, name: str, refusal: Refusal) -> None:
    value = getattr(settings, refusal.setting)
    if refusal.setting in changed(settings) and refusal.value in (None, value):
        option = f"--{refusal.setting.replace('_', '-')}"
        raise UsageError(f"{option} {value} cannot be combined with --strategy {name}", remedy=refusal.remedy)
