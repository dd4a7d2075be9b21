"""Count all phrases of any number of rows in fixed memory, and then the promising ones exactly.

The first pass counts phrases by a hash in 2^22 buckets. The second pass counts the phrases in the best buckets one by
one, so phrases that share a bucket are told apart. A phrase counts once per row.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tenor.compiled import compiled, inlined
from tenor.insights.phrases.words import BREAK, CONTENT, END, START
from tenor.models.wide.hashing import extended_hash

LONGEST = 4  # words of a phrase
BITS = 22
SLOTS = 1 << 18  # of the exact table; at most three quarters are used
MOST = 3 * SLOTS // 4
_SHIFT = np.uint64(64 - BITS)
_MASK = np.uint64(SLOTS - 1)


@dataclass(frozen=True)
class PhraseRows:
    """Some rows to count phrases in."""

    tokens: NDArray[np.int32]
    ends: NDArray[np.int64]
    negative: NDArray[np.float32]  # probability that each row is negative
    recent: NDArray[np.int8]  # 1: in the last period, 0: before, -1: no date


class BucketCounts:
    """Rows by bucket: all of them, the negative ones (sums of probabilities), recent ones, and earlier ones."""

    def __init__(self) -> None:
        self.rows = np.zeros(1 << BITS, np.int32)
        self.negative = np.zeros(1 << BITS, np.float32)
        self.recent = np.zeros((2, 1 << BITS), np.int32)  # 0: before the last period, 1: in it
        self.dated = np.zeros(2, np.int64)  # all rows before the last period, and all rows in it
        self._seen = np.zeros(1 << BITS, np.int32)
        self._row = 0

    def num_tested(self, fewest: int) -> int:
        """Buckets with at least so many rows."""
        return int((self.rows >= fewest).sum())

    def add(self, rows: PhraseRows, kinds: NDArray[np.uint8]) -> None:
        _count(
            rows.tokens, rows.ends, rows.negative, rows.recent, kinds, self.rows, self.negative, self.recent,
            self._seen, self._row,
        )  # fmt: skip
        self._row += len(rows.ends)
        self.dated += np.bincount(rows.recent[rows.recent >= 0], minlength=2)


@inlined
def _may_end(kind: Any, length: int) -> Any:
    return kind == CONTENT or (kind == END and length > 1)


@compiled
def _count(
    tokens: Any, ends: Any, negative: Any, recent: Any, kinds: Any, rows: Any, sums: Any, by_time: Any, seen: Any,
    before: int,
) -> None:  # fmt: skip
    start = 0
    for row in range(len(ends)):
        for first in range(start, ends[row]):
            if kinds[tokens[first]] != CONTENT and kinds[tokens[first]] != START:
                continue
            state = np.uint64(0)
            for at in range(first, min(first + LONGEST, ends[row])):
                kind = kinds[tokens[at]]
                if kind == BREAK:
                    break
                state = extended_hash(state, tokens[at])
                if not _may_end(kind, at - first + 1):
                    continue
                bucket = state >> _SHIFT
                if seen[bucket] == before + row + 1:
                    continue
                seen[bucket] = before + row + 1
                rows[bucket] += 1
                sums[bucket] += negative[row]
                if recent[row] >= 0:
                    by_time[recent[row], bucket] += 1
        start = ends[row]


class ExactCounts:
    """Rows by phrase, for phrases in chosen buckets. `of_*` have one entry per phrase, in the order of first sight."""

    def __init__(self, chosen: NDArray[np.bool_]) -> None:
        self._chosen = chosen
        self._keys = np.zeros(SLOTS, np.uint64)
        self._ids = np.full(SLOTS, -1, np.int32)
        self._used = np.zeros(1, np.int64)
        self._words = np.zeros((MOST, LONGEST), np.int32)  # tokens, 0 after the last one
        self._figures = np.zeros((MOST, 5), np.float64)  # rows, negative, contribution, before, recent
        self._seen = np.zeros(MOST, np.int64)
        self._row = 0

    def add(self, rows: PhraseRows, kinds: NDArray[np.uint8], contributions: NDArray[np.float32]) -> None:
        """Count; `contributions` are (tokens, longest), with no columns if the model gives none."""
        _count_exactly(
            rows.tokens, rows.ends, rows.negative, rows.recent, kinds, contributions, self._chosen, self._keys,
            self._ids, self._used, self._words, self._figures, self._seen, self._row,
        )  # fmt: skip
        self._row += len(rows.ends)

    @property
    def words(self) -> NDArray[np.int32]:
        return self._words[: self._used[0]]

    @property
    def figures(self) -> NDArray[np.float64]:
        return self._figures[: self._used[0]]


@inlined
def find_slot(keys: Any, ids: Any, state: Any) -> Any:
    """The slot of a phrase's hash, or the empty slot where it belongs."""
    slot = state & _MASK
    while ids[slot] >= 0 and keys[slot] != state:
        slot = (slot + np.uint64(1)) & _MASK
    return slot


@inlined
def span_value(contributions: Any, first: Any, last: Any) -> Any:
    """The contributions of all n-grams inside the tokens from `first` to `last`."""
    total = 0.0
    for start in range(first, last + 1):
        for n in range(min(contributions.shape[1], last - start + 1)):
            total += contributions[start, n]
    return total


@compiled
def _count_exactly(
    tokens: Any, ends: Any, negative: Any, recent: Any, kinds: Any, contributions: Any, chosen: Any, keys: Any,
    ids: Any, used: Any, words: Any, figures: Any, seen: Any, before: int,
) -> None:  # fmt: skip
    start = 0
    for row in range(len(ends)):
        for first in range(start, ends[row]):
            if kinds[tokens[first]] != CONTENT and kinds[tokens[first]] != START:
                continue
            state = np.uint64(0)
            for at in range(first, min(first + LONGEST, ends[row])):
                kind = kinds[tokens[at]]
                if kind == BREAK:
                    break
                state = extended_hash(state, tokens[at])
                if not _may_end(kind, at - first + 1) or not chosen[state >> _SHIFT]:
                    continue
                slot = find_slot(keys, ids, state)
                phrase = ids[slot]
                if phrase < 0:
                    if used[0] == MOST:
                        continue
                    phrase = used[0]
                    used[0] += 1
                    keys[slot], ids[slot] = state, phrase
                    for i in range(first, at + 1):
                        words[phrase, i - first] = tokens[i]
                if seen[phrase] == before + row + 1:
                    continue
                seen[phrase] = before + row + 1
                figures[phrase, 0] += 1
                figures[phrase, 1] += negative[row]
                figures[phrase, 2] += span_value(contributions, first, at)
                if recent[row] >= 0:
                    figures[phrase, 3 + recent[row]] += 1
        start = ends[row]


def phrase_hashes(phrases: Iterable[Iterable[int]]) -> list[int]:
    """The hash of each phrase, given as token ids."""
    return [int(_hash(np.array(list(phrase), np.int32))) for phrase in phrases]


@compiled
def _hash(tokens: Any) -> Any:
    state = np.uint64(0)
    for at in range(len(tokens)):
        state = extended_hash(state, tokens[at])
    return state
