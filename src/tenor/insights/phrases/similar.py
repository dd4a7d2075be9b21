"""Which words can stand for each other in these reviews: words with the same neighbours, as `stopped` and `quit`."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tenor.compiled import compiled

NEIGHBOURS = 1500  # most frequent words that count as neighbours
REACH = 2  # words to the left and to the right
ENOUGH = 20_000_000  # tokens after which counting stops


class WordContexts:
    """Compares words by the words that stand just before and after them."""

    def __init__(self, targets: Sequence[int], num_ids: int) -> None:
        """Prepare to count.

        Args:
            targets: The token ids to compare.
            num_ids: Token ids are below this number; lower ids are more frequent words.
        """
        self._place = {target: place for place, target in enumerate(targets)}
        self._slots = np.full(num_ids, -1, np.int32)
        self._slots[list(targets)] = np.arange(len(targets))
        self._counts = np.zeros((len(targets), 2 * REACH * NEIGHBOURS), np.float32)
        self._vectors: NDArray[np.float32] | None = None

    def count(self, blocks: Iterable[tuple[NDArray[np.int32], NDArray[np.int64]]]) -> None:
        """Count the neighbours in blocks of (tokens, end of each row), until there are enough."""
        seen = 0
        for tokens, ends in blocks:
            _add(tokens, ends, self._slots, self._counts)
            seen += len(tokens)
            if seen > ENOUGH:
                break

    def similarity(self, one: int, other: int) -> float:
        """The cosine of the words' neighbours, weighted by positive pointwise mutual information."""
        if self._vectors is None:
            self._vectors = _vectors(self._counts)
        return float(self._vectors[self._place[one]] @ self._vectors[self._place[other]])


def _vectors(counts: NDArray[np.float32]) -> NDArray[np.float32]:
    smoothed = counts.sum(axis=0) ** 0.75  # rare neighbours would otherwise count too much (Levy et al. 2015)
    expected = counts.sum(axis=1, keepdims=True) * (smoothed / max(float(smoothed.sum()), 1e-9))
    gain = np.zeros_like(counts)
    seen = counts > 0
    gain[seen] = np.maximum(np.log(counts[seen] / expected[seen]), 0.0)
    vectors: NDArray[np.float32] = gain / np.maximum(np.linalg.norm(gain, axis=1, keepdims=True), 1e-9)
    return vectors


@compiled
def _add(tokens: Any, ends: Any, slots: Any, counts: Any) -> None:
    start = 0
    for row in range(len(ends)):
        for at in range(start, ends[row]):
            slot = slots[tokens[at]]
            if slot < 0:
                continue
            for step in range(-REACH, REACH + 1):
                near = at + step
                if step == 0 or near < start or near >= ends[row]:
                    continue
                place = step + REACH - (1 if step > 0 else 0)
                if tokens[near] < NEIGHBOURS:
                    counts[slot, place * NEIGHBOURS + tokens[near]] += 1.0
        start = ends[row]
