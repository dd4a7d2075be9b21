"""One process without other workers: the null case, and the reference that the other strategies are compared with."""

from __future__ import annotations

from tenor.training.strategies.base import Strategy


class Single(Strategy):
    """Uses the default of the base class for everything."""
