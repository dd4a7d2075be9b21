"""The n-grams of token ids as hashed features: which buckets a row has, and with which weights.

A row has each of its n-grams once, however often it occurs (Wang & Manning 2012). An n-gram weighs more if few rows
have it and if it tells the classes apart. The weights of a row are scaled to length 1, so that long rows do not
dominate.
"""

from __future__ import annotations

import threading
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tenor.compiled import compiled, inlined

_LARGEST_STAMP = 1 << 30

GOLDEN = 0x9E3779B97F4A7C15
_GOLDEN = np.uint64(GOLDEN)
_U1, _U27, _U30, _U31 = np.uint64(1), np.uint64(27), np.uint64(30), np.uint64(31)
MIX_STEPS = ((30, 0xBF58476D1CE4E5B9), (27, 0x94D049BB133111EB), (31, 0))  # bits to shift, factor; 0: none
_K1, _K2 = np.uint64(MIX_STEPS[0][1]), np.uint64(MIX_STEPS[1][1])


@dataclass(frozen=True)
class RowNgrams:
    """The n-grams of some rows, one row after another."""

    buckets: NDArray[np.int64]  # all buckets that the rows, and others given with them, have, in rising order
    ids: NDArray[np.int64]  # positions in `buckets`
    starts: NDArray[np.int64]  # (rows + 1,) where each row starts in `ids`
    weights: NDArray[np.float32]  # of each n-gram in its row


class NgramIndex:
    """Finds the n-grams of rows that have a weight. Threads may share it."""

    def __init__(self, weights: NDArray[np.float32], longest: int) -> None:
        """Use these weights.

        Args:
            weights: The weight of each bucket; 0 for n-grams to ignore. Their number is a power of two.
            longest: Tokens of the longest n-gram; all shorter ones count too.
        """
        self.longest = longest
        self._weights = weights
        self._shift = np.uint64(64 - (len(weights).bit_length() - 1))
        self._seen = np.zeros((len(weights), 2), np.int32)  # of each bucket: the last row that had it, its position
        self._stamp = 1
        self._lock = threading.Lock()

    def __call__(self, tokens: NDArray[Any], lengths: NDArray[Any], own: slice | None = None) -> RowNgrams:
        """Find the n-grams of rows.

        Args:
            tokens: The ids of all rows, one row after another.
            lengths: Ids of each row.
            own: The rows whose n-grams to return; `buckets` are those of all rows. None returns all rows.
        """
        first, last = (own.start, own.stop) if own else (0, len(lengths))
        ends = np.cumsum(lengths, dtype=np.int64)
        starts = np.zeros(last - first + 1, np.int64)
        room = self.longest * len(tokens)
        buckets, ids = np.empty(room, np.int64), np.empty(room, np.int64)
        weights = np.empty(room, np.float32)
        with self._lock:
            if self._stamp + len(ends) > _LARGEST_STAMP:
                self._seen[:], self._stamp = 0, 1
            found = _find(
                np.ascontiguousarray(tokens, np.int32), ends, self.longest, self._shift, self._weights, self._seen,
                self._stamp, first, last, buckets, ids, starts, weights,
            )  # fmt: skip
            self._stamp += len(ends)
        count = starts[-1]
        order = np.argsort(buckets[:found])
        place = np.empty(found, np.int64)
        place[order] = np.arange(found)
        return RowNgrams(buckets[order], place[ids[:count]], starts, weights[:count])


def count_rows_with(
    rows: Iterable[tuple[NDArray[Any], NDArray[Any], NDArray[Any]]], bits: int, longest: int, num_classes: int
) -> NDArray[np.int32]:
    """The number of rows of each class that have each bucket, (classes, buckets).

    Args:
        rows: Blocks of rows, each as (tokens, lengths, labels).
        bits: There are 2^bits buckets.
        longest: Tokens of the longest n-gram.
        num_classes: Labels are below this number.
    """
    counts, last = np.zeros((num_classes, 1 << bits), np.int32), np.zeros(1 << bits, np.int32)
    shift, before = np.uint64(64 - bits), 1
    for tokens, lengths, labels in rows:
        ends = np.cumsum(lengths, dtype=np.int64)
        if len(labels) != len(ends) or int(labels.max(initial=0)) >= num_classes:
            raise ValueError("every row needs a label below the number of classes")
        _count(np.ascontiguousarray(tokens, np.int32), ends, labels, longest, shift, before, counts, last)
        before += len(ends)
    return counts


def bucket_weights(counts: NDArray[np.int32], num_rows: int) -> NDArray[np.float32]:
    """The weight idf × √|r| of each bucket; 0 for buckets that fewer than two rows have.

    idf is log(rows / rows with it). r is the naive-Bayes log-count ratio of a class and all others, with one row more
    of each (Wang & Manning 2012); of several classes, the one with the largest |r| counts.

    Args:
        counts: (classes, buckets), see `count_rows_with`.
        num_rows: The number of rows that were counted.
    """
    total = counts.sum(axis=0)
    known = np.flatnonzero(total >= 2)
    found = counts[:, known].astype(np.float64) + 1.0  # (classes, known)
    sums = (counts.sum(axis=1, dtype=np.float64) + counts.shape[1])[:, None]
    others, other_sums = found.sum(axis=0) - found, sums.sum() - sums
    ratio = np.abs(np.log(found / sums) - np.log(others / other_sums)).max(axis=0)
    weights = np.zeros(len(total), np.float32)
    weights[known] = np.log(num_rows / total[known]) * np.sqrt(ratio)
    return weights


@inlined
def _mixed(state: Any) -> Any:
    """The finaliser of splitmix64: every input bit affects every output bit."""
    state = (state ^ (state >> _U30)) * _K1
    state = (state ^ (state >> _U27)) * _K2
    return state ^ (state >> _U31)


@inlined
def extended_hash(state: Any, token: Any) -> Any:
    """The hash of an n-gram from the hash of its first n - 1 tokens and its last token."""
    return _mixed(state * _GOLDEN + np.uint64(token) + _U1)


@compiled
def _count(tokens: Any, ends: Any, labels: Any, longest: int, shift: Any, before: int, counts: Any, last: Any) -> None:
    """Count each bucket once per row. `last` remembers the last row that had a bucket; rows count from `before`."""
    start = 0
    for row in range(len(ends)):
        end = min(ends[row], len(tokens))
        for first in range(start, end):
            state = np.uint64(0)
            for at in range(first, min(first + longest, end)):
                state = extended_hash(state, tokens[at])
                bucket = state >> shift
                if last[bucket] != before + row:
                    last[bucket] = before + row
                    counts[labels[row], bucket] += 1
        start = end


@compiled
def _find(
    tokens: Any,
    ends: Any,
    longest: int,
    shift: Any,
    weights: Any,
    seen: Any,
    stamp: int,
    own_first: int,
    own_last: int,
    buckets: Any,
    ids: Any,
    starts: Any,
    found_weights: Any,
) -> int:
    """Fill `buckets` (their number is returned), `ids`, `starts` and `found_weights`.

    Row r has the stamp `stamp` + r. A bucket with an older stamp is new among these rows.
    """
    start, num_buckets, count = 0, 0, 0
    for row in range(len(ends)):
        end = min(ends[row], len(tokens))
        is_own = own_first <= row < own_last
        begin, square = count, 0.0
        for first in range(start, end):
            state = np.uint64(0)
            for at in range(first, min(first + longest, end)):
                state = extended_hash(state, tokens[at])
                bucket = state >> shift
                weight = weights[bucket]
                if weight == 0.0 or seen[bucket, 0] == stamp + row:
                    continue
                if seen[bucket, 0] < stamp:
                    seen[bucket, 1] = num_buckets
                    buckets[num_buckets] = bucket
                    num_buckets += 1
                seen[bucket, 0] = stamp + row
                if is_own:
                    ids[count] = seen[bucket, 1]
                    found_weights[count] = weight
                    square += weight * weight
                    count += 1
        if is_own:
            starts[row - own_first + 1] = count
            scale = 1.0 / np.sqrt(square) if square > 0.0 else 0.0
            for at in range(begin, count):
                found_weights[at] *= scale
        start = end
    return num_buckets
