"""What a batch costs each worker, and how to divide it so that all workers finish together."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from tenor.compiled import compiled, inlined
from tenor.errors import TrainingError

Floats = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Costs:
    """Worker i needs fixed[i] + per_token[i] × (padded tokens) seconds and takes at most caps[i] padded tokens."""

    fixed: Floats  # (workers,)
    per_token: Floats  # (workers,), above 0
    caps: Floats  # (workers,), padded tokens; infinity for no limit

    def finish(self, tokens: Floats) -> Floats:
        """The seconds that each worker needs for its tokens."""
        return self.fixed + self.per_token * tokens

    def share_out(self, total: float) -> Floats:
        """Divide `total` tokens so that all workers finish at the same time, ignoring the bounds of rows.

        A worker with a fixed cost beyond that time gets no tokens. A worker gets at most its cap. Tokens beyond the sum
        of the caps are not distributed.
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
    """The tokens that each worker can process in the given seconds."""
    return np.minimum(np.maximum((seconds - fixed) / per_token, 0.0), caps)


def place(lengths: NDArray[np.int32], costs: Costs) -> Floats:
    """Divide a batch into one run of neighbouring rows per worker so that the slowest finishes as early as possible.

    If there are enough rows, every worker gets at least one, so that its speed can still be measured. No worker gets a
    row longer than its cap.

    Args:
        lengths: The tokens of each row, in descending order.
        costs: The costs and caps of the workers.

    Returns:
        The padded tokens of each worker.

    Raises:
        TrainingError: The caps are too small for the batch.
    """
    tokens, placed = _place(np.maximum(lengths, 1), costs.fixed, costs.per_token, costs.caps)
    if placed < len(lengths):
        if lengths[0] > costs.caps.max():
            raise TrainingError(
                f"a row of {lengths[0]} tokens exceeds every worker's token cap", remedy="raise --token-caps"
            )
        raise TrainingError(
            f"a batch of {len(lengths)} rows of up to {lengths[0]} tokens exceeds the workers' token caps",
            remedy="raise --token-caps, or lower --batch-size",
        )
    return tokens


@compiled
def _place(lengths: NDArray[np.int32], fixed: Floats, per_token: Floats, caps: Floats) -> tuple[Floats, int]:
    """Find the smallest time by bisection. Returns the padded tokens of each worker and the number of rows placed."""
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
    """The number of rows that each worker leaves for the workers after it: one for each with a large enough cap."""
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
    """Give each worker in turn as many rows as it can process in `seconds`.

    Writes the padded tokens of each worker to `tokens` and returns the number of rows placed.
    """
    at, rows, workers = 0, len(lengths), len(fixed)
    for worker in range(workers):
        longest = lengths[min(at, rows - 1)]
        budget = min(max((seconds - fixed[worker]) / per_token[worker], 0.0), caps[worker])
        least = 1 if rows >= workers and caps[worker] >= longest else 0
        own = min(max(least, int(budget / longest)), rows - left[worker] - at)
        tokens[worker] = own * longest
        at += own
    return at
