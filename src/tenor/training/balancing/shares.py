"""The shares of the workers as a function of the batch number, so that all ranks divide every batch in the same way.

The message of each step carries the padded tokens and compute seconds of every worker. All ranks give them to the same
balancer and make the same decisions. A decision after batch k applies from batch k + 1 on. The loader works ahead, so
batches that it has already divided are divided again.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from tenor.settings import wrong_value
from tenor.store.order import Order
from tenor.training.balancing.balancer import Balancer
from tenor.training.balancing.costs import Costs, place
from tenor.training.balancing.mode import EPOCH, OFF, parse_mode

Floats = NDArray[np.float64]

MAX_UNLEARNT = 100  # steps; learning from a whole epoch at once would cause a noticeable pause


class CostDecision(NamedTuple):
    """The costs to divide work by, with a number that grows with each decision; None means fixed shares."""

    number: int
    costs: Costs | None


class SharePlan:
    """Divides every batch among the workers, by fixed shares or by their measured speeds.

    Args:
        mode: When to adapt the shares: `off`, `epoch` or `steps:N`.
        order: The batches and the lengths of their rows.
        shares: The shares to start with.
        caps: The maximum padded tokens per worker and batch.

    Raises:
        TrainingError: The caps are too small for the longest row or batch.
    """

    def __init__(self, mode: str, order: Order, shares: Floats, caps: Floats) -> None:
        self.every = parse_mode(mode)
        self.order, self.first = order, shares
        self.balancer = Balancer(len(shares), caps)
        is_placed = self.every != OFF or np.isfinite(caps).any()  # else the shares are used as they are, even 0
        slow = 1.0 / np.maximum(shares, 1e-6 * shares.max())  # a share of 0 becomes the one row that every worker gets
        start = Costs(np.zeros(len(shares)), slow, caps) if is_placed else None
        if start and np.isfinite(caps).any():  # refuse caps that are too small now, not hours later
            place(order.lengths[[order.lengths.argmax()]], start)
            place(order.longest_batch(), start)
        self.decision = CostDecision(0, start)  # replaced in one assignment because the loader's thread reads it
        self.unlearnt: list[tuple[Floats, Floats]] = []  # tokens and seconds of the latest steps

    def shares(self, epoch: int, k: int) -> tuple[int, Floats]:
        """How to divide batch k: the number of the present decision, and each worker's padded tokens or fixed share."""
        number, costs = self.decision
        if costs is None:
            return number, self.first
        return number, place(self.order.lengths[self.order.batch(epoch, k)], costs)

    def note(self, epoch: int, k: int, tokens: Sequence[float], seconds: Sequence[float]) -> None:
        """Add each worker's padded tokens and compute seconds in batch k, and decide if it is time."""
        if self.every == OFF:
            return
        self.unlearnt.append((np.array(tokens), np.array(seconds)))
        is_due = self._is_due(epoch, k)
        if is_due or len(self.unlearnt) >= MAX_UNLEARNT:
            self._learn()
        if is_due:
            self._decide()

    def _is_due(self, epoch: int, k: int) -> bool:
        """Whether to decide after batch k. In the first N steps that is after every step: then there is most to learn,
        and wrong shares cost most."""
        if self.every == EPOCH:
            return k + 1 == self.order.num_batches
        num_seen = self.balancer.seen + len(self.unlearnt)
        return num_seen <= self.every or (epoch * self.order.num_batches + k + 1) % self.every == 0

    def _learn(self) -> None:
        """Learn from several steps at once: after a training step the balancer's data is no longer in the cache."""
        for tokens, seconds in self.unlearnt:
            self.balancer.observe(tokens, seconds)
        self.unlearnt = []

    def _decide(self) -> None:
        number, costs = self.decision
        assert costs is not None  # set at the start if balancing is on
        decided = self.balancer.decide(costs.share_out(self.balancer.total))
        if decided is not None:
            self.decision = CostDecision(number + 1, decided)

    def state(self) -> dict[str, Any]:
        """The state as JSON values for a checkpoint; empty if balancing is off."""
        if self.every == OFF:
            return {}
        self._learn()
        number, costs = self.decision
        kept = {"fixed": costs.fixed.tolist(), "per_token": costs.per_token.tolist()} if number and costs else None
        return {"size": len(self.first), "costs": kept, "balancer": self.balancer.state()}

    def restore(self, state: dict[str, Any]) -> None:
        """Continue with the shares of a checkpoint, unless it has another number of workers."""
        if not isinstance(state, dict):
            raise ValueError("balance is not an object")
        if self.every == OFF or state.get("size") != len(self.first):
            return
        try:
            if kept := state.get("costs"):
                fixed, per_token = (_numbers(kept[name], len(self.first)) for name in ("fixed", "per_token"))
                self.decision = CostDecision(self.decision.number + 1, Costs(fixed, per_token, self.balancer.caps))
            self.balancer.restore(state["balancer"])
        except (KeyError, TypeError, OverflowError) as error:
            raise ValueError(f"balance is damaged ({error})") from error


def _numbers(values: list[float], size: int) -> Floats:
    numbers = np.array(values, dtype=np.float64)
    if numbers.shape != (size,) or not np.isfinite(numbers).all():
        raise ValueError("balance has costs that are not one number for each worker")
    return numbers


def parse_caps(text: str, size: int) -> Floats:
    """Parse `--token-caps`: nothing for no limit, one number for all workers, or one per worker, such as 9000:4000."""
    if not text:
        return np.full(size, np.inf)
    try:
        caps = np.array([float(part) for part in text.split(":")])
    except ValueError:
        caps = np.empty(0)
    if len(caps) == 1:
        caps = np.repeat(caps, size)
    if len(caps) != size or not np.all(caps > 0):
        raise wrong_value("token_caps", repr(text), f"give one number above 0, or {size} numbers separated by colons")
    return caps
