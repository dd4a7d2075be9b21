"""Simulated workers for the balancer: the cost of each worker, its noise, and changes of its speed."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from tenor.training.balancing.balancer import Balancer
from tenor.training.balancing.costs import Costs

Floats = NDArray[np.float64]


@dataclass
class History:
    """What a simulation records for every step.

    `shares` are the shares in use. `errors` are their mean relative distances from the ideal shares. `excess` is the
    expected extra time of a medium-sized batch compared with ideal shares (0.1 means 10 % longer).
    """

    shares: list[Floats]
    errors: list[float]
    excess: list[float]

    def settled_after(self, start: int) -> int:
        """Return the steps after `start` until the error stays within 10 % and the excess within 15 %.

        The error hides one wrong worker among many; the excess hides a worker that has too little to do.
        """
        steps = range(start, len(self.errors))
        late = [step for step in steps if self.errors[step] > 0.1 or self.excess[step] > 0.15]
        return late[-1] + 1 - start if late else 0

    def num_changes(self, start: int = 0) -> int:
        pairs = zip(self.shares[start:], self.shares[start + 1 :], strict=False)
        return sum(not np.array_equal(before, after) for before, after in pairs)


def simulate(
    size: int,
    num_steps: int,
    costs: Callable[[int], Costs],
    *,
    noise: float = 0.1,
    seed: int = 0,
    every: int = 5,
    rows_per_worker: int = 64,
) -> History:
    """Run a balancer against workers with the given true costs per step; `every=0` keeps the shares equal."""
    rng = np.random.default_rng(seed)
    balancer = Balancer(size)
    used: Costs | None = None
    history = History([], [], [])
    equal = np.full(size, 1.0 / size)
    for step in range(num_steps):
        total = float(rng.uniform(20, 200) * rows_per_worker * size)
        truth = costs(step)
        tokens = used.share_out(total) if used else equal * total
        tokens = np.maximum(tokens, total / (rows_per_worker * size))  # every worker gets at least one row
        middle = 110.0 * rows_per_worker * size
        given = used.share_out(middle) if used else equal * middle
        best = truth.share_out(middle)
        history.shares.append(given / middle)
        history.errors.append(float(np.mean(np.abs(given / best - 1.0))))
        history.excess.append(float(truth.finish(given).max() / truth.finish(best).max() - 1.0))
        balancer.observe(tokens, truth.finish(tokens) * rng.lognormal(0.0, noise, size))
        if step < every or (every and (step + 1) % every == 0):
            used = balancer.decide(used.share_out(balancer.total) if used else equal) or used
    return history


def steady(fixed: Floats, per_token: Floats) -> Costs:
    return Costs(fixed, per_token, np.full(len(fixed), np.inf))
