"""The convolution with max pooling at prediction: products of a word with the filters are computed once per word.

An output of the convolution is the sum of `window` products, each of one word vector with the filters at one place of
the window. Reviews repeat words, so a batch has far fewer words than tokens. The products of words are kept, and a
token costs only additions.
"""

from __future__ import annotations

import threading
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tenor.compiled import fast_compiled, inlined, is_small

Floats = NDArray[Any]

ROOM = 128 << 20  # bytes of products that are kept


class Convolution:
    """The filters, and the products of the words that were met first, which tend to be the frequent ones.

    Threads may share it: kept products never change, and new ones are added under a lock.
    """

    def __init__(self, vectors: Floats, weight: Floats, bias: Floats) -> None:
        """Use these weights.

        Args:
            vectors: (words, width): the word vectors.
            weight: (hidden, window × width): the filters, for the oldest input of the window first.
            bias: (hidden,)
        """
        hidden, width = len(bias), vectors.shape[1]
        window = weight.shape[1] // width
        filters = weight.reshape(hidden, window, width).transpose(2, 1, 0)
        self._columns = np.ascontiguousarray(filters.reshape(width, window * hidden))
        self._vectors, self._bias, self._shape = vectors, bias, (window, hidden)
        room = min(len(vectors), max(64, ROOM // (self._columns.shape[1] * vectors.itemsize)))
        self._kept = np.empty((room, window, hidden), vectors.dtype)  # memory is used once it is written
        self._place = np.full(len(vectors), -1, np.int32)  # of each word among the kept ones; -1 if it is not
        self._num_kept, self._lock = 0, threading.Lock()

    def largest(self, tokens: NDArray[np.int32], ends: NDArray[np.int64]) -> Floats:
        """(rows, hidden): the largest output of each filter in each row, after the ReLU.

        Args:
            tokens: The ids of all rows, one row after another; a row has at least one.
            ends: (rows,): where each row ends.
        """
        if is_small(len(tokens)):
            return self._largest_of_few(tokens, ends)
        is_used = np.zeros(len(self._vectors), np.bool_)
        is_used[tokens] = True
        words = np.flatnonzero(is_used)
        where, others = self._keep(words)
        place = np.empty(len(self._vectors), np.int64)
        place[words] = where
        best = np.empty((len(ends), len(self._bias)), self._kept.dtype)
        find_largest(place[tokens], ends, self._kept, self._products_of(others), best)
        best += self._bias
        return np.maximum(best, 0.0, out=best)

    def by_word(self, tokens: NDArray[np.int32]) -> Floats:
        """(tokens, hidden): what each word of one row adds to the largest output of each filter, apart from the bias.

        Filters that are not active are 0, and so are words outside a filter's best window.
        """
        window, hidden = self._shape
        products = self._products_of(tokens.astype(np.int64))  # (tokens, window, hidden)
        sums = self._sums(products)
        last = sums.argmax(axis=0)
        filters = np.flatnonzero(sums[last, np.arange(hidden)] + self._bias > 0)
        values = np.zeros_like(sums)
        for k in range(window):
            words = last[filters] - (window - 1 - k)
            inside = words >= 0
            values[words[inside], filters[inside]] += products[words[inside], k, filters[inside]]
        return values

    def _sums(self, products: Floats) -> Floats:
        """(tokens, hidden): the outputs of one row, from the products of its words, apart from the bias."""
        window, hidden = self._shape
        sums = np.zeros((len(products), hidden), products.dtype)
        for late in range(min(window, len(products))):  # steps between the word and the end of the window
            sums[late:] += products[: len(products) - late, window - 1 - late]
        return sums

    def _largest_of_few(self, tokens: NDArray[np.int32], ends: NDArray[np.int64]) -> Floats:
        rows = np.split(tokens.astype(np.int64), ends[:-1])
        best: Floats = np.stack([self._sums(self._products_of(row)).max(axis=0) for row in rows])
        best += self._bias
        return np.maximum(best, 0.0, out=best)

    def _keep(self, words: NDArray[np.int64]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Keep the products of as many words as there is room for.

        Returns:
            (the place of each word, the words that are not kept): these have the places after those of all kept ones.
        """
        room = len(self._kept)
        with self._lock:
            new = words[self._place[words] < 0][: room - self._num_kept]
            if len(new):
                last = self._num_kept + len(new)
                self._kept[self._num_kept : last] = self._products_of(new)
                self._place[new], self._num_kept = np.arange(self._num_kept, last), last
            places = self._place[words].astype(np.int64)
        others = places < 0
        places[others] = room + np.arange(int(others.sum()))
        return places, words[others]

    def _products_of(self, words: NDArray[np.int64]) -> Floats:
        """(words, window, hidden)"""
        products: Floats = self._vectors[words] @ self._columns
        return products.reshape(len(words), *self._shape)


@inlined
def _products(kept: Any, others: Any, place: Any, k: int) -> Any:
    if place < len(kept):
        return kept[place, k]
    return others[place - len(kept), k]


@fast_compiled
def find_largest(places: Any, ends: Any, kept: Any, others: Any, best: Any) -> None:
    """kept[place, k] has the products of a word with the filters at place k of the window."""
    window, hidden = kept.shape[1:]
    total = np.empty(hidden, kept.dtype)
    start = np.int64(0)
    for row in range(ends.shape[0]):
        top = best[row]
        top[:] = -np.inf
        for t in range(start, ends[row]):
            now = _products(kept, others, places[t], window - 1)
            for j in range(hidden):
                total[j] = now[j]
            for k in range(max(0, window - 1 - (t - start)), window - 1):
                before = _products(kept, others, places[t - (window - 1 - k)], k)
                for j in range(hidden):
                    total[j] += before[j]
            for j in range(hidden):
                top[j] = max(top[j], total[j])
        start = ends[row]
