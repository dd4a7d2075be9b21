"""What a batch costs each worker, and how to cut it so that all of them finish together."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from tenor.errors import TrainingError

Floats = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Costs:
    """Worker i needs fixed[i] + per_token[i] × (padded tokens) seconds and is never given more than caps[i] of them."""

    fixed: Floats  # (workers,)
    per_token: Floats  # (workers,), above 0
    caps: Floats  # (workers,), padded tokens; infinity for none

    def finish(self, tokens: Floats) -> Floats:
        """The seconds each worker needs for its tokens."""
        return self.fixed + self.per_token * tokens

    def budgets(self, seconds: float) -> Floats:
        """The tokens each worker gets through in the given seconds."""
        return np.clip((seconds - self.fixed) / self.per_token, 0.0, self.caps)

    def share_out(self, total: float) -> Floats:
        """A total of tokens over the workers so that they finish together, fractions of samples allowed.

        A worker whose fixed cost alone exceeds that moment gets none; one at its cap stays there. Tokens beyond the
        sum of the caps are left out.
        """
        total = min(total, float(self.caps.sum()))
        low, high = 0.0, float(np.max(self.fixed + self.per_token * np.minimum(total, self.caps)))
        for _ in range(60):
            middle = (low + high) / 2
            low, high = (low, middle) if self.budgets(middle).sum() >= total else (middle, high)
        return self.budgets(high)


def place(lengths: NDArray[np.int32], costs: Costs) -> Floats:
    """Cut a batch, sorted by falling length, into neighbouring slices of whole rows: each worker's padded tokens.

    Found by bisection: the smallest number of seconds in which all rows find a place. Every worker gets at least one
    row while there are rows enough, so that none is starved and its speed goes on being seen; beyond that one row no
    worker passes its cap.
    """
    sizes = lengths.tolist()  # plain numbers: thousands of single look-ups are slow in an array
    workers = list(zip(costs.fixed.tolist(), costs.per_token.tolist(), costs.caps.tolist(), strict=True))
    low, high = 0.0, max(fixed + per_token * sizes[0] * (len(sizes) + 1.0) for fixed, per_token, _ in workers)
    if _fill(sizes, workers, high)[0] < len(sizes):
        raise TrainingError(
            f"a batch of {len(sizes)} rows of up to {sizes[0]} tokens does not fit the workers' token caps",
            remedy="raise --token-caps, or lower --batch-size",
        )
    for _ in range(40):
        middle = (low + high) / 2
        low, high = (low, middle) if _fill(sizes, workers, middle)[0] == len(sizes) else (middle, high)
    return np.array(_fill(sizes, workers, high)[1])


def _fill(lengths: list[int], workers: list[tuple[float, float, float]], seconds: float) -> tuple[int, list[float]]:
    """Fill the time of the workers (fixed, per_token, cap) one after another: how many rows found a place, and each
    worker's padded tokens."""
    at, rows, tokens = 0, len(lengths), []
    for left, (fixed, per_token, cap) in zip(range(len(workers) - 1, -1, -1), workers, strict=True):
        longest = lengths[min(at, rows - 1)]
        budget = min(max((seconds - fixed) / per_token, 0.0), cap)
        own = min(max(1, int(budget / longest)), max(0, rows - left - at), rows - at)  # the others must find one each
        if own == 0 and at < rows < len(workers):
            own = 1  # fewer rows than workers: one each until they run out
        tokens.append(float(own * longest))
        at += own
    return at, tokens
