"""How workers agree: one file a strategy behind one protocol."""

from __future__ import annotations

from tenor.training.strategies.allreduce import AllReduce
from tenor.training.strategies.base import Strategy, SyncStats
from tenor.training.strategies.single import Single

STRATEGIES: dict[str, type[Strategy]] = {"single": Single, "allreduce": AllReduce}

__all__ = ["STRATEGIES", "AllReduce", "Single", "Strategy", "SyncStats"]
