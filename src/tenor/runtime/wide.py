"""The wide part at prediction: the weighted sum of a row's n-grams, straight from its token ids.

Importance and weights of a bucket lie side by side, so that an n-gram costs one access to memory. The rows' own n-grams
are remembered in a small table, because a row has each n-gram once.
"""

from __future__ import annotations

import threading
from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tenor.compiled import compiled, inlined, is_small
from tenor.corpus.scanning.wide import prefetch
from tenor.models.spec import WideSpec
from tenor.models.wide.characters import NO_CHARACTERS, Characters
from tenor.models.wide.hashing import extended_hash
from tenor.models.wide.ngrams import room_of_row
from tenor.runtime.few_ngrams import FewNgrams, FoundNgrams

_MOST_STAMPS = 1 << 30
_U32 = np.uint64(32)
_SPREAD = np.uint64(0x9E3779B97F4A7C15)


class WideTable:
    """The numbers of a trained wide part. Threads may share it."""

    def __init__(
        self, spec: WideSpec, weights: Mapping[str, NDArray[Any]], characters: Characters = NO_CHARACTERS
    ) -> None:
        if spec.characters and characters is NO_CHARACTERS:
            raise ValueError("the character n-grams of the vocabulary are missing")
        self.importance, self.weight = weights["wide.importance"], weights["wide.ngrams.weight"]
        self.longest, self.characters = spec.longest, characters
        self.shift = np.uint64(64 - spec.bits)
        self.bias = weights["wide.bias"].astype(np.float64)
        self._table: NDArray[np.float32] | None = None
        self._lock = threading.Lock()

    @property
    def table(self) -> NDArray[np.float32]:
        """(buckets, 1 + outputs): importance, then one weight per output, as compiled code reads them."""
        with self._lock:
            if self._table is None:
                self._table = np.concatenate([self.importance[:, None], self.weight], axis=1, dtype=np.float32)
                self.importance, self.weight = self._table[:, 0], self._table[:, 1:]  # so that all are in memory once
            return self._table

    @property
    def num_outputs(self) -> int:
        return len(self.bias)

    def few(self) -> FewNgrams:
        """What computes without compiled code."""
        return FewNgrams(self.importance, self.weight, self.shift, self.longest, self.characters)


class WideSums:
    """Computes with a table. It owns memory that is written to, so each thread needs one of its own."""

    def __init__(self, table: WideTable) -> None:
        self._table = table
        self._keys, self._stamp = np.zeros(1 << 12, np.uint64), 1
        self._buckets = np.empty(1 << 11, np.uint64)

    def logits(self, tokens: NDArray[np.int32], ends: NDArray[np.int64]) -> NDArray[np.float64]:
        """(rows, outputs); row r is tokens[ends[r - 1] : ends[r]]."""
        if is_small(len(tokens)):
            return self._table.few().sums(tokens, ends) + self._table.bias
        self._make_room(tokens, ends)
        sums = np.zeros((len(ends), self._table.num_outputs))
        chars = self._table.characters
        add_up(tokens, ends, self._table.longest, self._table.shift, chars.starts, chars.hashes, self._table.table,
               self._buckets, self._keys, self._stamp, sums)  # fmt: skip
        self._stamp += len(ends)
        return sums + self._table.bias

    def contributions(self, tokens: NDArray[np.int32], ends: NDArray[np.int64]) -> FoundNgrams:
        """What each n-gram adds to the logits; with the bias, the values of a row add up to its logits.

        Character n-grams count as part of the first word that has them.
        """
        if is_small(len(tokens)):
            return self._table.few()(tokens, ends)
        self._make_room(tokens, ends)
        room = self._table.longest * len(tokens)
        found = FoundNgrams(
            np.zeros(len(ends) + 1, np.int64),
            np.empty(room, np.int64),
            np.empty(room, np.int64),
            np.empty((room, self._table.num_outputs)),
        )
        chars = self._table.characters
        _list(tokens, ends, self._table.longest, self._table.shift, chars.starts, chars.hashes, self._table.table,
              self._keys, self._stamp, found.starts, found.firsts, found.sizes, found.values)  # fmt: skip
        self._stamp += len(ends)
        count = int(found.starts[-1])
        return FoundNgrams(found.starts, found.firsts[:count], found.sizes[:count], found.values[:count])

    def _make_room(self, tokens: NDArray[np.int32], ends: NDArray[np.int64]) -> None:
        if len(ends) and int(ends[-1]) > len(tokens):
            raise IndexError("a row is outside its array")
        longest_row = int(np.diff(ends, prepend=0).max(initial=0))
        need = _slots((self._table.longest + self._table.characters.most) * longest_row)
        if need > len(self._keys):
            self._keys, self._stamp = np.zeros(need, np.uint64), 1
            self._buckets = np.empty(need, np.uint64)
        if self._stamp + len(ends) > _MOST_STAMPS:
            self._keys[:], self._stamp = 0, 1


def _slots(ngrams: int) -> int:
    return 1 << (2 * max(ngrams, 1)).bit_length()


@inlined
def _is_new(bucket: Any, stamp: Any, keys: Any, mask: Any) -> bool:
    """Whether the row with this stamp has not had the bucket before; from now on it has."""
    key = (stamp << _U32) | bucket
    at = ((bucket * _SPREAD) >> _U32) & mask
    while True:
        held = keys[at]
        if held == key:
            return False
        if held >> _U32 != stamp:  # of an earlier row: the slot is free
            keys[at] = key
            return True
        at = (at + np.uint64(1)) & mask


@inlined
def _mask(ngrams: int) -> Any:
    size = np.uint64(64)
    while size < np.uint64(2 * ngrams):
        size *= np.uint64(2)
    return size - np.uint64(1)


@compiled
def add_up(
    tokens: Any,
    ends: Any,
    longest: int,
    shift: Any,
    char_starts: Any,
    char_hashes: Any,
    table: Any,
    buckets: Any,
    keys: Any,
    first_stamp: int,
    sums: Any,
) -> None:
    """Add the weights of each row's n-grams, times their importance, to `sums`, for importances of length 1."""
    start, outputs = np.int64(0), sums.shape[1]
    width = table.shape[1]
    flat = table.reshape(-1)
    for row in range(ends.shape[0]):
        end, stamp = ends[row], np.uint64(first_stamp + row)
        # Hash all n-grams of the row first: the processor then has many accesses to the table in progress at once.
        count = 0
        for first in range(start, end):
            state = np.uint64(0)
            for at in range(first, min(first + longest, end)):
                state = extended_hash(state, tokens[at])
                bucket = state >> shift
                prefetch(flat, np.int64(bucket) * width)
                buckets[count] = bucket
                count += 1
            token = tokens[first]
            if 0 <= token < len(char_starts) - 1:
                for at in range(char_starts[token], char_starts[token + 1]):
                    bucket = char_hashes[at] >> shift
                    prefetch(flat, np.int64(bucket) * width)
                    buckets[count] = bucket
                    count += 1
        mask, square = _mask(count), 0.0
        for i in range(count):
            bucket = buckets[i]
            importance = np.float64(table[bucket, 0])
            if importance == 0.0 or not _is_new(bucket, stamp, keys, mask):
                continue
            square += importance * importance
            for j in range(outputs):
                sums[row, j] += importance * table[bucket, j + 1]
        if square > 0.0:
            for j in range(outputs):
                sums[row, j] /= np.sqrt(square)
        start = end


@compiled
def _list(
    tokens: Any,
    ends: Any,
    longest: int,
    shift: Any,
    char_starts: Any,
    char_hashes: Any,
    table: Any,
    keys: Any,
    first_stamp: int,
    starts: Any,
    firsts: Any,
    sizes: Any,
    values: Any,
) -> None:
    """Like `add_up`, with one value per n-gram; that of a word includes its new character n-grams."""
    start, count = np.int64(0), 0
    for row in range(ends.shape[0]):
        end, stamp, square, begin = ends[row], np.uint64(first_stamp + row), 0.0, count
        mask = _mask(room_of_row(tokens, start, end, longest, char_starts))
        for first in range(start, end):
            state, token = np.uint64(0), tokens[first]
            word = -1  # the entry of the word itself
            for at in range(first, min(first + longest, end)):
                state = extended_hash(state, tokens[at])
                bucket = state >> shift
                importance = np.float64(table[bucket, 0])
                if importance == 0.0 or not _is_new(bucket, stamp, keys, mask):
                    continue
                square += importance * importance
                firsts[count], sizes[count] = first, at + 1 - first
                for j in range(values.shape[1]):
                    values[count, j] = importance * table[bucket, j + 1]
                if at == first:
                    word = count
                count += 1
            if 0 <= token < len(char_starts) - 1:
                for at in range(char_starts[token], char_starts[token + 1]):
                    bucket = char_hashes[at] >> shift
                    importance = np.float64(table[bucket, 0])
                    if importance == 0.0 or not _is_new(bucket, stamp, keys, mask):
                        continue
                    square += importance * importance
                    if word < 0:
                        word = count
                        firsts[count], sizes[count] = first, 1
                        values[count] = 0.0
                        count += 1
                    for j in range(values.shape[1]):
                        values[word, j] += importance * table[bucket, j + 1]
        if square > 0.0:
            values[begin:count] /= np.sqrt(square)
        starts[row + 1] = count
        start = end
