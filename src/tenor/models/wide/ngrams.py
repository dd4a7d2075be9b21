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
from tenor.models.wide.characters import IMPORTANCE, NO_CHARACTERS, Characters
from tenor.models.wide.hashing import extended_hash

MIN_REVIEWS = 2  # training reviews that must have an n-gram of a bucket; other buckets are ignored
_LARGEST_STAMP = 1 << 30


@dataclass(frozen=True)
class RowNgrams:
    """The n-grams of some rows, one row after another."""

    buckets: NDArray[np.int64]  # all buckets that the rows, and others given with them, have, in rising order
    ids: NDArray[np.int64]  # positions in `buckets`
    starts: NDArray[np.int64]  # (rows + 1,) where each row starts in `ids`
    weights: NDArray[np.float32]  # of each n-gram in its row


class NgramIndex:
    """Finds the n-grams of rows that have a weight. Threads may share it."""

    def __init__(self, weights: NDArray[np.float32], longest: int, characters: Characters = NO_CHARACTERS) -> None:
        """Use these weights.

        Args:
            weights: The weight of each bucket; 0 for n-grams to ignore. Their number is a power of two.
            longest: Tokens of the longest n-gram; all shorter ones count too.
            characters: The character n-grams of each token, which are features as well.
        """
        self.longest, self.characters = longest, characters
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
        tokens, chars = np.ascontiguousarray(tokens, np.int32), self.characters
        room = self.longest * len(tokens) + chars.count(tokens)
        buckets, ids = np.empty(room, np.int64), np.empty(room, np.int64)
        weights = np.empty(room, np.float32)
        with self._lock:
            if self._stamp + len(ends) > _LARGEST_STAMP:
                self._seen[:], self._stamp = 0, 1
            found = _find(
                tokens, ends, self.longest, self._shift, chars.starts, chars.hashes, self._weights, self._seen,
                self._stamp, first, last, buckets, ids, starts, weights,
            )  # fmt: skip
            self._stamp += len(ends)
        count = starts[-1]
        order = np.argsort(buckets[:found])
        place = np.empty(found, np.int64)
        place[order] = np.arange(found)
        return RowNgrams(buckets[order], place[ids[:count]], starts, weights[:count])


def count_rows_with(
    rows: Iterable[tuple[NDArray[Any], NDArray[Any], NDArray[Any]]],
    bits: int,
    longest: int,
    num_classes: int,
    characters: Characters = NO_CHARACTERS,
) -> NDArray[np.int32]:
    """The number of rows of each class that have each bucket, (classes, buckets).

    Args:
        rows: Blocks of rows, each as (tokens, lengths, labels).
        bits: There are 2^bits buckets.
        longest: Tokens of the longest n-gram.
        num_classes: Labels are below this number.
        characters: The character n-grams of each token, which are counted as well.
    """
    counts, last = np.zeros((num_classes, 1 << bits), np.int32), np.zeros(1 << bits, np.int32)
    shift, before = np.uint64(64 - bits), 1
    for tokens, lengths, labels in rows:
        ends = np.cumsum(lengths, dtype=np.int64)
        if len(labels) != len(ends) or int(labels.max(initial=0)) >= num_classes:
            raise ValueError("every row needs a label below the number of classes")
        ids = np.ascontiguousarray(tokens, np.int32)
        _count(ids, ends, labels, longest, shift, characters.starts, characters.hashes, before, counts, last)
        before += len(ends)
    return counts


def bucket_weights(
    counts: NDArray[np.int32], num_rows: int, characters: Characters = NO_CHARACTERS
) -> NDArray[np.float32]:
    """The weight idf × √|r| of each bucket; 0 for buckets that fewer than `MIN_REVIEWS` rows have.

    idf is log(rows / rows with it). r is the naive-Bayes log-count ratio of a class and all others, with one row more
    of each (Wang & Manning 2012); of several classes, the one with the largest |r| counts.

    Args:
        counts: (classes, buckets), see `count_rows_with`.
        num_rows: The number of rows that were counted.
        characters: The character n-grams of each token: their buckets weigh less, because a word has many of them.
    """
    total = counts.sum(axis=0)
    known = np.flatnonzero(total >= MIN_REVIEWS)
    found = counts[:, known].astype(np.float64) + 1.0  # (classes, known)
    sums = (counts.sum(axis=1, dtype=np.float64) + counts.shape[1])[:, None]
    others, other_sums = found.sum(axis=0) - found, sums.sum() - sums
    ratio = np.abs(np.log(found / sums) - np.log(others / other_sums)).max(axis=0)
    weights = np.zeros(len(total), np.float32)
    weights[known] = np.log(num_rows / total[known]) * np.sqrt(ratio)
    if len(characters.hashes):
        weights[np.unique(characters.hashes >> np.uint64(64 - (len(weights).bit_length() - 1)))] *= IMPORTANCE
    return weights


@inlined
def row_buckets(
    tokens: Any, start: Any, end: Any, longest: int, shift: Any, char_starts: Any, char_hashes: Any, out: Any
) -> int:
    """Fill `out` with the buckets of a row's n-grams, repeated ones included; return their number."""
    count = 0
    for first in range(start, end):
        state = np.uint64(0)
        for at in range(first, min(first + longest, end)):
            state = extended_hash(state, tokens[at])
            out[count] = state >> shift
            count += 1
        token = tokens[first]
        if 0 <= token < len(char_starts) - 1:
            for at in range(char_starts[token], char_starts[token + 1]):
                out[count] = char_hashes[at] >> shift
                count += 1
    return count


@inlined
def room_of_row(tokens: Any, start: Any, end: Any, longest: int, char_starts: Any) -> Any:
    """At least as many numbers as `row_buckets` writes."""
    room = (end - start) * longest
    for at in range(start, end):
        token = tokens[at]
        if 0 <= token < len(char_starts) - 1:
            room += char_starts[token + 1] - char_starts[token]
    return room


@compiled
def _count(
    tokens: Any,
    ends: Any,
    labels: Any,
    longest: int,
    shift: Any,
    char_starts: Any,
    char_hashes: Any,
    before: int,
    counts: Any,
    last: Any,
) -> None:
    """Count each bucket once per row. `last` remembers the last row that had a bucket; rows count from `before`."""
    start = 0
    for row in range(len(ends)):
        end = min(ends[row], len(tokens))
        own = np.empty(room_of_row(tokens, start, end, longest, char_starts), np.uint64)
        for i in range(row_buckets(tokens, start, end, longest, shift, char_starts, char_hashes, own)):
            bucket = own[i]
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
    char_starts: Any,
    char_hashes: Any,
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
        own = np.empty(room_of_row(tokens, start, end, longest, char_starts), np.uint64)
        for i in range(row_buckets(tokens, start, end, longest, shift, char_starts, char_hashes, own)):
            bucket = own[i]
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
