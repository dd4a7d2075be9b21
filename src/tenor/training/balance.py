"""Shares of the work as a function of the batch number, so that all ranks cut every batch alike.

Each step's message carries every worker's padded tokens, and its compute seconds of the step before. All ranks feed
them to the same balancer and so decide the same. The loader works some batches ahead: what is decided after batch k
holds from the first batch that no rank can have cut yet.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tenor.errors import UsageError
from tenor.store.order import Order
from tenor.training.balance_mode import EPOCH, OFF, parse_mode
from tenor.training.balancer import Balancer
from tenor.training.costs import Costs, place
from tenor.training.loader import LEAD

Floats = NDArray[np.float64]


class Balance:
    def __init__(self, mode: str, order: Order, shares: Floats, caps: Floats) -> None:
        self.every = parse_mode(mode)
        self.order, self.first = order, shares
        self.balancer = Balancer(len(shares), caps)
        with np.errstate(divide="ignore"):
            start = Costs(np.zeros(len(shares)), 1.0 / shares, caps) if np.isfinite(caps).any() else None
        self.plan: tuple[tuple[int, Costs | None], ...] = ((0, start),)  # from which batch on; replaced as a whole
        self.given: Floats | None = None  # padded tokens of the last step, by worker

    def _number(self, epoch: int, k: int) -> int:
        return epoch * self.order.num_batches + k

    def shares(self, epoch: int, k: int) -> Floats:
        """The padded tokens of each worker in batch k, or the shares a run starts with."""
        number = self._number(epoch, k)
        costs = [costs for start, costs in self.plan if start <= number][-1]
        return self.first if costs is None else place(self.order.lengths[self.order.batch(epoch, k)], costs)

    def note(self, epoch: int, k: int, tokens: Sequence[float], seconds: Sequence[float]) -> None:
        """Take in each worker's padded tokens of batch k and compute seconds of the batch before; decide when due."""
        before, self.given = self.given, np.array(tokens)
        if self.every == OFF:
            return
        if before is not None:
            self.balancer.observe(before, np.array(seconds))
        number = self._number(epoch, k)
        if self.every == EPOCH:
            self._decide(number, number + 1, is_due=k == self.order.num_batches - 1)
        else:
            self._decide(number, number + LEAD, is_due=(number + 1) % self.every == 0)

    def _decide(self, number: int, start: int, is_due: bool) -> None:
        if not is_due:
            return
        latest = self.plan[-1][1]
        decided = self.balancer.decide(latest.share_out(self.balancer.total) if latest else self.first)
        if decided is not None:
            past = [entry for entry in self.plan if entry[0] <= number + 1]
            self.plan = (past[-1], *self.plan[len(past) :], (start, decided))

    def state(self) -> dict[str, Any]:
        """JSON for a checkpoint; empty where there is nothing to keep."""
        if self.every == OFF:
            return {}
        plan = [[start, costs.fixed.tolist(), costs.per_token.tolist()] for start, costs in self.plan if costs]
        return {"size": len(self.first), "plan": plan, "balancer": self.balancer.state()}

    def restore(self, state: dict[str, Any]) -> None:
        """Go on with the shares of a checkpoint; with another number of workers start afresh."""
        if self.every == OFF or state.get("size") != len(self.first):
            return
        caps = self.balancer.caps
        kept = tuple((int(start), Costs(np.array(a), np.array(b), caps)) for start, a, b in state["plan"])
        self.plan = (self.plan[0], *kept)
        self.balancer.restore(state["balancer"])


def parse_caps(text: str, size: int) -> Floats:
    """Empty: none; one number for all; or one a worker with colons between."""
    if not text:
        return np.full(size, np.inf)
    try:
        caps = np.array([float(part) for part in text.split(":")])
    except ValueError:
        caps = np.empty(0)
    if len(caps) == 1:
        caps = np.repeat(caps, size)
    if len(caps) != size or not np.all(caps > 0):
        remedy = f"give one number above 0, or {size} with colons between"
        raise UsageError(f"--token-caps cannot be {text!r}", remedy=remedy)
    return caps
