"""Shares of the work as a function of the batch number, so that all ranks cut every batch alike.

Each step's message carries every worker's padded tokens and compute seconds. All ranks feed them to the same balancer
and so decide the same. What is decided after batch k holds from batch k + 1 on; the loader works ahead, so the batches
that lie ready by then are cut again.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from tenor.errors import UsageError
from tenor.store.order import Order
from tenor.training.balance_mode import EPOCH, OFF, parse_mode
from tenor.training.balancer import Balancer
from tenor.training.costs import Costs, place

Floats = NDArray[np.float64]

MOST_UNLEARNT = 100  # steps; an epoch's worth at once would take noticeably long


class Decision(NamedTuple):
    """The costs to share work by; None for fixed shares."""

    number: int
    costs: Costs | None


class Balance:
    def __init__(self, mode: str, order: Order, shares: Floats, caps: Floats) -> None:
        self.every = parse_mode(mode)
        self.order, self.first = order, shares
        self.balancer = Balancer(len(shares), caps)
        is_placed = self.every != OFF or np.isfinite(caps).any()  # else the shares are cut as they are, even 0
        slow = 1.0 / np.maximum(shares, 1e-6 * shares.max())  # a share of 0 becomes the one row that all get
        start = Costs(np.zeros(len(shares)), slow, caps) if is_placed else None
        if start and np.isfinite(caps).any():  # what cannot fit is refused here, not hours later
            place(order.lengths[[order.lengths.argmax()]], start)
            place(order.longest_batch(), start)
        self.decision = Decision(0, start)  # replaced as a whole: the loader's thread reads it
        self.unlearnt: list[tuple[Floats, Floats]] = []  # tokens and seconds of late steps

    def shares(self, epoch: int, k: int) -> tuple[int, Floats]:
        """The number of the decision in force, and by it the padded tokens of each worker in batch k, or the fixed
        shares."""
        number, costs = self.decision
        if costs is None:
            return number, self.first
        return number, place(self.order.lengths[self.order.batch(epoch, k)], costs)

    def note(self, epoch: int, k: int, tokens: Sequence[float], seconds: Sequence[float]) -> None:
        """Take in each worker's padded tokens and compute seconds of batch k; decide when due."""
        if self.every == OFF:
            return
        self.unlearnt.append((np.array(tokens), np.array(seconds)))
        is_due = self._is_due(epoch, k)
        if is_due or len(self.unlearnt) >= MOST_UNLEARNT:
            self._learn()
        if is_due:
            self._decide()

    def _is_due(self, epoch: int, k: int) -> bool:
        """At first after every step: then most is learnt, and most is lost by shares that are wrong."""
        if self.every == EPOCH:
            return k + 1 == self.order.num_batches
        num_seen = self.balancer.seen + len(self.unlearnt)
        return num_seen <= self.every or (epoch * self.order.num_batches + k + 1) % self.every == 0

    def _learn(self) -> None:
        """All steps at once: little work so often is slow, as a step leaves nothing of it in the cache."""
        for tokens, seconds in self.unlearnt:
            self.balancer.observe(tokens, seconds)
        self.unlearnt = []

    def _decide(self) -> None:
        number, costs = self.decision
        assert costs is not None  # who decides starts with some
        decided = self.balancer.decide(costs.share_out(self.balancer.total))
        if decided is not None:
            self.decision = Decision(number + 1, decided)

    def state(self) -> dict[str, Any]:
        """JSON for a checkpoint; empty where there is nothing to keep."""
        if self.every == OFF:
            return {}
        self._learn()
        number, costs = self.decision
        kept = {"fixed": costs.fixed.tolist(), "per_token": costs.per_token.tolist()} if number and costs else None
        return {"size": len(self.first), "costs": kept, "balancer": self.balancer.state()}

    def restore(self, state: dict[str, Any]) -> None:
        """Go on with the shares of a checkpoint; with another number of workers start afresh."""
        if self.every == OFF or state.get("size") != len(self.first):
            return
        if kept := state.get("costs"):
            costs = Costs(np.array(kept["fixed"]), np.array(kept["per_token"]), self.balancer.caps)
            self.decision = Decision(self.decision.number + 1, costs)
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
