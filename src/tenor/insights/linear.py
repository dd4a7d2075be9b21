"""A quick classifier of hashed n-grams for cross-validation: every row is judged by a model that has not seen it.

The model is a softmax over the n-grams of a row. Each n-gram counts once per row, and a row's weights have length 1.
Adagrad trains it, one row at a time, in compiled code.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tenor.compiled import compiled
from tenor.models.wide.hashing import extended_hash
from tenor.models.wide.ngrams import bucket_weights

BITS = 20
LONGEST = 2  # words of an n-gram
FOLDS = 5
RATE = 0.5
BIAS_RATE = 0.01
START = 0.01  # of Adagrad's sums
MOST_VISITS = 1_500_000  # rows that one fold's model is trained on, repeats included
MOST_EPOCHS = 4
_SHIFT = np.uint64(64 - BITS)


@dataclass(frozen=True)
class Labelled:
    """Some rows with labels."""

    tokens: NDArray[np.int32]
    lengths: NDArray[np.int64]
    labels: NDArray[np.int64]
    folds: NDArray[np.int8]
    places: NDArray[np.int64]  # where each row stands in the result

    @property
    def starts(self) -> NDArray[np.int64]:
        return np.concatenate([[0], np.cumsum(self.lengths, dtype=np.int64)])


Blocks = Callable[[], Iterable[Labelled]]


def cross_validated(blocks: Blocks, num_rows: int, num_classes: int, folds: int = FOLDS) -> NDArray[np.float32]:
    """(rows, classes): the probabilities of each row by a model trained on the other folds.

    Args:
        blocks: Gives all rows, block by block, each time that it is called. Files are often sorted, so blocks should
            mix rows from everywhere; the rows of a block are visited in random order.
        num_rows: How many rows there are.
        num_classes: Labels are below this number.
        folds: The number of folds.
    """
    counts, sizes = _count(blocks, num_classes, folds)
    epochs = max(1, min(MOST_EPOCHS, MOST_VISITS // max(num_rows, 1)))
    chances = np.zeros((num_rows, num_classes), np.float32)
    rng = np.random.default_rng(0)
    for fold in range(folds):
        importance = bucket_weights(counts.sum(axis=0) - counts[fold], max(2, int(sizes.sum() - sizes[fold])))
        model = _Model(np.maximum(importance, 0.0), num_classes)
        for _ in range(epochs):
            for block in blocks():
                order = np.flatnonzero(block.folds != fold)
                rng.shuffle(order)
                model.train(block, order)
        for block in blocks():
            model.judge(block, np.flatnonzero(block.folds == fold), chances)
    return chances


class _Model:
    def __init__(self, importance: NDArray[np.float32], num_classes: int) -> None:
        self.importance = importance
        self.weights = np.zeros((1 << BITS, num_classes), np.float32)
        self.sums = np.full((1 << BITS, num_classes), START, np.float32)
        self.bias = np.zeros(num_classes, np.float32)
        self.seen, self.stamp = np.zeros(1 << BITS, np.int32), 0

    def train(self, block: Labelled, order: NDArray[np.int64]) -> None:
        _train(
            block.tokens, block.starts, block.labels, order, self.importance, self.weights, self.sums, self.bias,
            self.seen, self.stamp,
        )  # fmt: skip
        self.stamp += len(order)

    def judge(self, block: Labelled, order: NDArray[np.int64], chances: NDArray[np.float32]) -> None:
        _judge(
            block.tokens, block.starts, order, block.places, self.importance, self.weights, self.bias, self.seen,
            self.stamp, chances,
        )  # fmt: skip
        self.stamp += len(order)


def _count(blocks: Blocks, num_classes: int, folds: int) -> tuple[NDArray[np.int32], NDArray[np.int64]]:
    """(rows of each fold and class with each bucket, rows of each fold)."""
    counts = np.zeros((folds, num_classes, 1 << BITS), np.int32)
    seen, stamp = np.zeros(1 << BITS, np.int32), 0
    sizes = np.zeros(folds, np.int64)
    for block in blocks():
        _count_block(block.tokens, block.starts, block.labels, block.folds, counts, seen, stamp)
        sizes += np.bincount(block.folds, minlength=folds)
        stamp += len(block.labels)
    return counts, sizes


@compiled
def _count_block(tokens: Any, starts: Any, labels: Any, folds: Any, counts: Any, seen: Any, stamp: int) -> None:
    for row in range(len(labels)):
        end = starts[row + 1]
        for first in range(starts[row], end):
            state = np.uint64(0)
            for at in range(first, min(first + LONGEST, end)):
                state = extended_hash(state, tokens[at])
                bucket = state >> _SHIFT
                if seen[bucket] != stamp + row + 1:
                    seen[bucket] = stamp + row + 1
                    counts[folds[row], labels[row], bucket] += 1


@compiled
def _features(
    tokens: Any, start: Any, end: Any, importance: Any, seen: Any, stamp: Any, buckets: Any, values: Any
) -> Any:
    """Fill the buckets and values of one row, scaled to length 1; return their number."""
    count, square = 0, 0.0
    for first in range(start, end):
        state = np.uint64(0)
        for at in range(first, min(first + LONGEST, end)):
            state = extended_hash(state, tokens[at])
            bucket = state >> _SHIFT
            if seen[bucket] == stamp or importance[bucket] == 0.0:
                continue
            seen[bucket] = stamp
            buckets[count], values[count] = bucket, importance[bucket]
            square += values[count] * values[count]
            count += 1
    if square > 0.0:
        values[:count] /= np.sqrt(square)
    return count


@compiled
def _chances(buckets: Any, values: Any, count: Any, weights: Any, bias: Any, out: Any) -> None:
    """The softmax of one row."""
    for j in range(len(out)):
        out[j] = bias[j]
    for i in range(count):
        for j in range(len(out)):
            out[j] += values[i] * weights[buckets[i], j]
    largest = out.max()
    total = 0.0
    for j in range(len(out)):
        out[j] = np.exp(out[j] - largest)
        total += out[j]
    for j in range(len(out)):
        out[j] /= total


@compiled
def _train(
    tokens: Any, starts: Any, labels: Any, order: Any, importance: Any, weights: Any, sums: Any, bias: Any, seen: Any,
    stamp: int,
) -> None:  # fmt: skip
    size = LONGEST * len(tokens) + 1
    buckets, values = np.empty(size, np.int64), np.empty(size, np.float32)
    out = np.empty(len(bias), np.float32)
    for i in range(len(order)):
        row = order[i]
        count = _features(tokens, starts[row], starts[row + 1], importance, seen, stamp + i + 1, buckets, values)
        _chances(buckets, values, count, weights, bias, out)
        for j in range(len(bias)):
            error = out[j] - (1.0 if labels[row] == j else 0.0)
            bias[j] -= BIAS_RATE * error
            for k in range(count):
                slope = error * values[k]
                sums[buckets[k], j] += slope * slope
                weights[buckets[k], j] -= RATE * slope / np.sqrt(sums[buckets[k], j])


@compiled
def _judge(
    tokens: Any, starts: Any, order: Any, places: Any, importance: Any, weights: Any, bias: Any, seen: Any, stamp: int,
    chances: Any,
) -> None:  # fmt: skip
    size = LONGEST * len(tokens) + 1
    buckets, values = np.empty(size, np.int64), np.empty(size, np.float32)
    for i in range(len(order)):
        row = order[i]
        count = _features(tokens, starts[row], starts[row + 1], importance, seen, stamp + i + 1, buckets, values)
        _chances(buckets, values, count, weights, bias, chances[places[row]])
