"""Workers that exist only as numbers: what each costs, how noisy it is, and when its speed changes."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from tenor.training.balancer import Balancer
from tenor.training.costs import Costs

Floats = NDArray[np.float64]


@dataclass
class History:
    """Of every step: the shares in force, how far they are from the ideal ones (mean over the workers, relative), and
    how much longer than the best a batch of the middle size is expected to take (0.1: a tenth longer)."""

    shares: list[Floats]
    errors: list[float]
    excess: list[float]

    def settled_after(self, start: int) -> int:
        """Steps after `start` from which on shares are off by a tenth at most, and steps take 15 % too long at most.

        The first is blind to one worker among many, the second to a worker that could do more.
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
    """Run a balancer against workers whose true costs at each step are given; with `every` 0 it is never asked."""
    rng = np.random.default_rng(seed)
    balancer = Balancer(size)
    used: Costs | None = None
    history = History([], [], [])
    equal = np.full(size, 1.0 / size)
    for step in range(num_steps):
        total = float(rng.uniform(20, 200) * rows_per_worker * size)
        truth = costs(step)
        tokens = used.share_out(total) if used else equal * total
        tokens = np.maximum(tokens, total / (rows_per_worker * size))  # at least one row each
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
