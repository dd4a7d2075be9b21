"""The balancer: from what each worker was seen to do, the costs to share work by. Pure: events in, decisions out.

It works with a model of each worker's cost, not with feedback on finish times, so it does not swing. New costs are
taken up only when they promise a gain beyond what noise alone shows.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tenor.training.costs import Costs
from tenor.training.fit import FADE, Fit

Floats = NDArray[np.float64]

LEAST_GAIN = 0.02  # of a step's time
HASTY = 1.25  # times the present error: costs known no better than that when they were taken up are soon replaced
DOUBT = 0.7  # of the usual threshold, to replace them


class Balancer:
    def __init__(self, size: int, caps: Floats | None = None) -> None:
        self.size = size
        self.caps = np.full(size, np.inf) if caps is None else caps
        self.fit = Fit(size)
        self.seen = 0
        self.is_warm = False
        self.total = 0.0  # padded tokens of a typical batch
        self.error_then = 0.0  # of the fit when costs were last taken up

    def observe(self, tokens: Floats, seconds: Floats) -> None:
        """What each worker was given in one step, and how long it took."""
        self.seen += 1
        if not self.is_warm:  # the first step after a start, in which caches fill and libraries load
            self.is_warm = True
            return
        self.fit.observe(tokens, seconds)
        total = float(tokens.sum())
        self.total = total if self.total == 0 else FADE * self.total + (1 - FADE) * total

    def decide(self, shares: Floats) -> Costs | None:
        """New costs to share work by, where they promise a gain over `shares`, the ones in force; else None."""
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
        """The gain that noise alone may show, from the worst of n workers' errors; less while the costs in force were
        taken up in haste; at least what a change is worth."""
        doubt = DOUBT if self.error_then > HASTY * self.fit.error else 1.0
        return max(LEAST_GAIN, doubt * self.fit.error * math.sqrt(2 * math.log(self.size)))

    def state(self) -> dict[str, Any]:
        return {"seen": self.seen, "total": self.total, "error_then": self.error_then, "fit": self.fit.state()}

    def restore(self, state: dict[str, Any]) -> None:
        self.seen, self.total = int(state["seen"]), float(state["total"])
        self.error_then = float(state.get("error_then", 0.0))  # older checkpoints have none
        self.fit.restore(state["fit"])
