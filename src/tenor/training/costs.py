"""What a batch costs each worker, and how to cut it so that all of them finish together."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from tenor.compiled import compiled, inlined
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

    def share_out(self, total: float) -> Floats:
        """A total of tokens over the workers so that they finish together, fractions of samples allowed.

        A worker whose fixed cost alone exceeds that moment gets none; one at its cap stays there. Tokens beyond the
        sum of the caps are left out.
        """
        return _share_out(self.fixed, self.per_token, self.caps, total)


@compiled
def _share_out(fixed: Floats, per_token: Floats, caps: Floats, total: float) -> Floats:
    total = min(total, caps.sum())
    low, high = 0.0, np.max(fixed + per_token * np.minimum(total, caps))
    for _ in range(60):
        middle = (low + high) / 2
        if _budgets(fixed, per_token, caps, middle).sum() >= total:
            high = middle
        else:
            low = middle
    return _budgets(fixed, per_token, caps, high)


@inlined
def _budgets(fixed: Floats, per_token: Floats, caps: Floats, seconds: float) -> Floats:
    """The tokens each worker gets through in the given seconds."""
    return np.minimum(np.maximum((seconds - fixed) / per_token, 0.0), caps)


def place(lengths: NDArray[np.int32], costs: Costs) -> Floats:
    """Cut a batch, sorted by falling length, into neighbouring slices of whole rows: each worker's padded tokens.

    The smallest number of seconds in which all rows find a place. Where there are rows enough every worker gets at
    least one, so that none is starved and its speed goes on being seen; but none gets a row that passes its cap.
    """
    tokens, placed = _place(np.maximum(lengths, 1), costs.fixed, costs.per_token, costs.caps)
    if placed < len(lengths):
        if lengths[0] > costs.caps.max():
            raise TrainingError(f"a row of {lengths[0]} tokens passes every worker's cap", remedy="raise --token-caps")
        raise TrainingError(
            f"a batch of {len(lengths)} rows of up to {lengths[0]} tokens does not fit the workers' token caps",
            remedy="raise --token-caps, or lower --batch-size",
        )
    return tokens


@compiled
def _place(lengths: NDArray[np.int32], fixed: Floats, per_token: Floats, caps: Floats) -> tuple[Floats, int]:
    """By bisection: each worker's padded tokens, and how many rows found a place."""
    tokens, left = np.empty(len(fixed)), _left(lengths, caps)
    low, high = 0.0, np.max(fixed + per_token * lengths[0] * (len(lengths) + 1.0))
    placed = _fill(lengths, fixed, per_token, caps, left, high, tokens)
    if placed == len(lengths):
        for _ in range(40):
            middle = (low + high) / 2
            if _fill(lengths, fixed, per_token, caps, left, middle, tokens) == len(lengths):
                high = middle
            else:
                low = middle
        _fill(lengths, fixed, per_token, caps, left, high, tokens)
    return tokens, placed


@inlined
def _left(lengths: NDArray[np.int32], caps: Floats) -> NDArray[np.int64]:
    """The rows that each worker leaves for those behind it: one for each whose cap can hold it."""
    rows, workers = len(lengths), len(caps)
    left = np.zeros(workers, np.int64)
    if rows >= workers:
        for worker in range(workers - 1, 0, -1):
            last = rows - 1 - left[worker]
            left[worker - 1] = left[worker] + (1 if caps[worker] >= lengths[last] else 0)
    return left


@inlined
def _fill(
    lengths: NDArray[np.int32],
    fixed: Floats,
    per_token: Floats,
    caps: Floats,
    left: NDArray[np.int64],
    seconds: float,
    tokens: Floats,
) -> int:
    """Fill the workers' time one after another, their padded tokens into `tokens`; how many rows found a place."""
    at, rows, workers = 0, len(lengths), len(fixed)
    for worker in range(workers):
        longest = lengths[min(at, rows - 1)]
        budget = min(max((seconds - fixed[worker]) / per_token[worker], 0.0), caps[worker])
        least = 1 if rows >= workers and caps[worker] >= longest else 0
        own = min(max(least, int(budget / longest)), rows - left[worker] - at)
        tokens[worker] = own * longest
        at += own
    return at
