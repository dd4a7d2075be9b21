"""The n-grams of a few rows in NumPy: the same as the compiled code of `wide.py`, for processes without numba."""

from __future__ import annotations

import itertools
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tenor.models.wide.characters import NO_CHARACTERS, Characters
from tenor.models.wide.hashing import GOLDEN, mixed_all

WITHIN = 1 << 20  # in place of the size of a character n-gram


@dataclass(frozen=True)
class FoundNgrams:
    """The n-grams of some rows that have a weight, one row after another."""

    starts: NDArray[np.int64]  # (rows + 1,) where each row starts
    firsts: NDArray[np.int64]  # where the n-gram first occurs, as an index of the rows' tokens
    sizes: NDArray[np.int64]  # tokens of the n-gram
    values: NDArray[np.float64]  # (n-grams, outputs): what it adds to each logit of the wide part


class FewNgrams:
    """Finds the n-grams of rows. Threads may share it."""

    def __init__(
        self,
        importance: NDArray[Any],
        weight: NDArray[Any],
        shift: np.uint64,
        longest: int,
        characters: Characters = NO_CHARACTERS,
    ) -> None:
        """Use these numbers of a wide part.

        Args:
            importance: (buckets,): how much each n-gram counts; 0 for those to ignore.
            weight: (buckets, outputs)
            shift: What leaves the bucket of a hash.
            longest: Tokens of the longest n-gram.
            characters: The character n-grams of each token.
        """
        self._importance, self._weight, self._shift, self._longest = importance, weight, shift, longest
        self._characters = characters

    def __call__(self, tokens: NDArray[np.int32], ends: NDArray[np.int64]) -> FoundNgrams:
        """The n-grams of the rows tokens[ends[r - 1] : ends[r]], with their values for importances of length 1."""
        found, length = self._find(tokens, ends)
        found = self._by_word(found)
        found.values[:] /= np.repeat(length, np.diff(found.starts))[:, None]
        return found

    def sums(self, tokens: NDArray[np.int32], ends: NDArray[np.int64]) -> NDArray[np.float64]:
        """(rows, outputs): the sum of the values of each row; added and divided in the order of the compiled code."""
        found, length = self._find(tokens, ends)
        sums = [_last_sum(found.values[a:b]) for a, b in itertools.pairwise(found.starts)]
        return np.array(sums).reshape(len(ends), -1) / length[:, None]

    def _find(self, tokens: NDArray[np.int32], ends: NDArray[np.int64]) -> tuple[FoundNgrams, NDArray[np.float64]]:
        """The n-grams with values that are not scaled, and the length of each row's importances (1 if there are none).

        The n-grams of a row are in the order of their first words, and short ones come before long ones.
        """
        total = int(ends[-1])
        rows = np.repeat(np.arange(len(ends)), np.diff(ends, prepend=0))
        firsts, sizes = np.divmod(np.arange(total * self._longest), self._longest)
        fits = firsts + sizes < ends[rows[firsts]]
        hashes = self._hashes(tokens[:total]).reshape(-1)
        if len(self._characters.hashes):
            places, theirs = self._characters.of(tokens[:total])
            order = np.argsort(np.concatenate([firsts, places]), kind="stable")  # after the n-grams of the same token
            firsts, hashes = np.concatenate([firsts, places])[order], np.concatenate([hashes, theirs])[order]
            sizes = np.concatenate([sizes, np.full(len(places), WITHIN)])[order]
            fits = np.concatenate([fits, np.ones(len(places), bool)])[order]
        buckets = hashes >> self._shift
        importance = self._importance[buckets.astype(np.int64)].astype(np.float64)
        chosen = np.flatnonzero(fits & (importance != 0.0))
        key = (rows[firsts[chosen]].astype(np.uint64) << np.uint64(32)) | buckets[chosen]
        kept = chosen[np.sort(np.unique(key, return_index=True)[1])]  # each n-gram counts once per row
        counts = np.bincount(rows[firsts[kept]], minlength=len(ends))
        starts = np.concatenate([[0], np.cumsum(counts)])
        own = importance[kept][:, None]
        values = own * self._weight[buckets[kept].astype(np.int64)].astype(np.float64)
        squares = [_last_sum((own * own)[a:b])[0] for a, b in itertools.pairwise(starts)]
        length = np.sqrt(squares)
        length[length == 0.0] = 1.0
        return FoundNgrams(starts, firsts[kept], sizes[kept] + 1, values), length

    def _by_word(self, found: FoundNgrams) -> FoundNgrams:
        """The same n-grams, where the character n-grams of a word are part of its entry."""
        within = found.sizes == WITHIN + 1
        if not within.any():
            return found
        words = np.full(int(found.firsts.max()) + 1, len(within))  # of each token: its entry
        np.minimum.at(words, found.firsts[within], np.flatnonzero(within))
        alone = np.flatnonzero(found.sizes == 1)
        words[found.firsts[alone]] = alone
        kept = ~within
        kept[words[found.firsts[within]]] = True
        values = np.where(within[:, None], 0.0, found.values)
        np.add.at(values, words[found.firsts[within]], found.values[within])
        starts = np.concatenate([[0], np.cumsum(kept)])[found.starts]
        sizes = np.where(within, 1, found.sizes)[kept]
        return FoundNgrams(starts, found.firsts[kept], sizes, values[kept])

    def _hashes(self, tokens: NDArray[np.int32]) -> NDArray[np.uint64]:
        """(tokens, longest): the hash of the n-gram of each size that begins at each token, if it fits its row."""
        words = np.concatenate([tokens, np.zeros(self._longest, np.int32)]).astype(np.uint64) + np.uint64(1)
        states = np.empty((len(tokens), self._longest), np.uint64)
        state = np.zeros(len(tokens), np.uint64)
        for size in range(self._longest):
            state = mixed_all(state * np.uint64(GOLDEN) + words[size : size + len(tokens)])
            states[:, size] = state
        return states


def _last_sum(values: NDArray[np.float64]) -> NDArray[np.float64]:
    """The sum over the rows of a matrix, one after another as a loop adds them, so that it is the same to the bit."""
    return np.add.accumulate(values, axis=0)[-1] if len(values) else np.zeros(values.shape[1])
