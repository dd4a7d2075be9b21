"""The balancer learns what work costs each worker and decides when other shares are worth a change.

It has no side effects: measurements in, decisions out. It models the cost of each worker instead of correcting finish
times step by step, so shares do not oscillate. New costs are adopted only if they promise a gain that noise cannot
explain.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tenor.training.balancing.costs import Costs
from tenor.training.balancing.fit import FADE, CostFit

Floats = NDArray[np.float64]

MIN_GAIN = 0.02  # of a step's time that new shares must save
EARLY_ERROR = 1.25  # times the present error of the fit: costs adopted with a larger error are early ones
EARLY_FACTOR = 0.7  # of the usual threshold is enough to replace early costs


class Balancer:
    """Learns the costs of `size` workers. `caps` are their maximum numbers of padded tokens per batch."""

    def __init__(self, size: int, caps: Floats | None = None) -> None:
        self.size = size
        self.caps = np.full(size, np.inf) if caps is None else caps
        self.fit = CostFit(size)
        self.seen = 0  # steps
        self.is_warm = False
        self.total = 0.0  # padded tokens in a typical batch
        self.error_then = 0.0  # error of the fit when costs were last adopted

    def observe(self, tokens: Floats, seconds: Floats) -> None:
        """Add one step: the padded tokens and the compute seconds of each worker."""
        self.seen += 1
        if not self.is_warm:  # in the first step after a start, caches fill and libraries load
            self.is_warm = True
            return
        self.fit.observe(tokens, seconds)
        total = float(tokens.sum())
        self.total = total if self.total == 0 else FADE * self.total + (1 - FADE) * total

    def decide(self, shares: Floats) -> Costs | None:
        """New costs to divide work by, or None if they promise too little gain over the present `shares`."""
        if not self.fit.known.any() or self.size == 1:
            return None
        costs = Costs(*self.fit.estimate(), self.caps)
        now = float(costs.finish(self.total * shares / shares.sum()).max())
        best = float(costs.finish(costs.share_out(self.total)).max())
        if 1.0 - best / now <= self.threshold:
            return None
        self.error_then = self.fit.error
        return costs

    @property
    def threshold(self) -> float:
        """The gain that justifies new shares: more than the largest error expected among all workers can show.

        Early costs, adopted when little was known, may be replaced for less. A gain below MIN_GAIN never suffices.
        """
        factor = EARLY_FACTOR if self.error_then > EARLY_ERROR * self.fit.error else 1.0
        return max(MIN_GAIN, factor * self.fit.error * math.sqrt(2 * math.log(self.size)))

    def state(self) -> dict[str, Any]:
        return {"seen": self.seen, "total": self.total, "error_then": self.error_then, "fit": self.fit.state()}

    def restore(self, state: dict[str, Any]) -> None:
        self.seen, self.total = int(state["seen"]), float(state["total"])
        self.error_then = float(state.get("error_then", 0.0))  # older checkpoints do not have it
        self.fit.restore(state["fit"])
