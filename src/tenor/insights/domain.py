"""Can a classifier tell two samples of reviews apart? Its AUC says how different they are."""

from __future__ import annotations

import math
from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from tenor.insights.linear import FOLDS, Labelled, cross_validated
from tenor.preparation.tokeniser.vocabulary import UNKNOWN
from tenor.store.reference import Reference, gathered

Z = 2.5758293035489004  # of a 99 % interval
FEWEST_TOKENS = 5  # of a review that the classifier sees, if there are enough
ENOUGH = 200  # reviews of each side
MANY = 1000  # reviews of each side that need no permutations
PERMUTATIONS = 19  # so that chance alone exceeds all of them in one of 20 cases
COMMON = 10  # occurrences of a word that the classifier sees if the sample made the vocabulary


def domain_auc(one: Reference, other: Reference, seed: int) -> tuple[float, float, float]:
    """(AUC, its lower and its upper end) of a cross-validated classifier of hashed n-grams; 0.5 means alike.

    Very short reviews are left out, if enough others remain: prepared data has each text once, so how often a text such
    as "good product" occurs depends on the number of rows.
    """
    one, other = _long_enough(one, other)
    tokens, lengths = _joined(one, other)
    labels = np.repeat([0, 1], [len(one.lengths), len(other.lengths)])
    folds = _folds(one, other, seed)
    block = Labelled(tokens, lengths.astype(np.int64), labels, folds, np.arange(len(labels)))

    def blocks() -> Iterator[Labelled]:
        yield block

    chances = cross_validated(blocks, len(labels), 2)
    return auc_interval(chances[labels == 1, 1], chances[labels == 0, 1])


def _folds(one: Reference, other: Reference, seed: int) -> NDArray[np.int8]:
    """A random fold of each row; each fold has its part of both sides.

    A review that both sides have is in one fold on both. Otherwise the classifier would have seen it on the other side
    alone, and would take it for a row of that side: the AUC would fall below 0.5 and hide what is really different.
    """
    rng, sides = np.random.default_rng(seed), [np.empty(len(side.lengths), np.int8) for side in (one, other)]
    for folds in sides:
        folds[rng.permutation(len(folds))] = np.arange(len(folds)) % FOLDS
    keys, new_keys = (row_hashes(side.tokens, side.lengths, seed) for side in (one, other))
    _, places, new_places = np.intersect1d(keys, new_keys, return_indices=True)
    sides[1][new_places] = sides[0][places]
    return np.concatenate(sides)


def exceeds_chance(one: Reference, other: Reference, auc: float, seed: int) -> bool:
    """Whether the AUC is above that of every one of 19 random divisions of the same reviews.

    The folds of a cross-validation depend on each other, so with few reviews the AUC varies more than its interval
    says. With many reviews the interval is right, and the answer is yes without a try.
    """
    if min(len(one.lengths), len(other.lengths)) >= MANY:
        return True
    every, rng = joined([one, other]), np.random.default_rng(seed)
    for number in range(PERMUTATIONS):
        order = rng.permutation(len(every.lengths))
        parts = np.sort(order[: len(one.lengths)]), np.sort(order[len(one.lengths) :])
        if domain_auc(every.take(parts[0]), every.take(parts[1]), seed + number)[0] >= auc:
            return False
    return True


def _long_enough(one: Reference, other: Reference) -> tuple[Reference, Reference]:
    rows = [np.flatnonzero(side.lengths >= FEWEST_TOKENS) for side in (one, other)]
    if min(map(len, rows)) < ENOUGH:
        return one, other
    return one.take(rows[0]), other.take(rows[1])


def _joined(one: Reference, other: Reference) -> tuple[NDArray[np.int32], NDArray[np.int32]]:
    """The tokens of both sides.

    If the vocabulary was made from the reference, words are never unknown in it, and rare words of the other side are
    always unknown. Then unknown and rare words are left out, or they would give the sides away.
    """
    tokens, lengths = np.concatenate([one.tokens, other.tokens]), np.concatenate([one.lengths, other.lengths])
    if one.is_held_out and other.is_held_out:
        return tokens, lengths
    counts = np.bincount(tokens, minlength=UNKNOWN + 1)
    keep = (counts >= COMMON)[tokens] & (tokens != UNKNOWN)
    row_of = np.repeat(np.arange(len(lengths)), lengths)
    return tokens[keep], np.bincount(row_of[keep], minlength=len(lengths)).astype(np.int32)


def auc_interval(above: NDArray[np.float32], below: NDArray[np.float32]) -> tuple[float, float, float]:
    """(AUC, lower end, upper end): the 99 % interval of DeLong et al. (1988), by ranks as in Sun & Xu (2014)."""
    m, n = len(above), len(below)
    ranks = _ranks(np.concatenate([above, below]).astype(np.float64))
    own_above, own_below = _ranks(above.astype(np.float64)), _ranks(below.astype(np.float64))
    auc = float((ranks[:m].sum() - m * (m + 1) / 2) / (m * n))
    of_above = (ranks[:m] - own_above) / n
    of_below = 1.0 - (ranks[m:] - own_below) / m
    spread = float(of_above.var(ddof=1) / m + of_below.var(ddof=1) / n) if min(m, n) > 1 else 1.0
    half = Z * math.sqrt(max(spread, 1e-12))
    return auc, max(0.0, auc - half), min(1.0, auc + half)


def _ranks(values: NDArray[np.float64]) -> NDArray[np.float64]:
    """Ranks from 1; equal values share the mean of theirs."""
    _, place, counts = np.unique(values, return_inverse=True, return_counts=True)
    last = np.cumsum(counts)
    ranks: NDArray[np.float64] = (last - (counts - 1) / 2.0)[place]
    return ranks


def distinct(sample: Reference, most: int, seed: int) -> Reference:
    """At most `most` different reviews: those with the smallest hashes, which is a random sample without repeats."""
    keys = row_hashes(sample.tokens, sample.lengths, seed)
    _, first = np.unique(keys, return_index=True)
    return sample.take(np.sort(first[:most]))


def row_hashes(tokens: NDArray[np.int32], lengths: NDArray[np.int32], seed: int) -> NDArray[np.uint64]:
    """A hash of each row's tokens in their order."""
    positions = np.arange(len(tokens)) - np.repeat(np.cumsum(lengths, dtype=np.int64) - lengths, lengths)
    with np.errstate(over="ignore"):
        mixed = _mixed(tokens.astype(np.uint64) + _mixed(positions.astype(np.uint64) + np.uint64(seed + 1)))
        sums = np.concatenate([[np.uint64(0)], np.cumsum(mixed, dtype=np.uint64)])
        ends = np.cumsum(lengths, dtype=np.int64)
        return _mixed(sums[ends] - sums[ends - lengths] + np.uint64(seed))


def _mixed(values: NDArray[np.uint64]) -> NDArray[np.uint64]:
    values = (values ^ (values >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    values = (values ^ (values >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return values ^ (values >> np.uint64(31))


def joined(parts: list[Reference]) -> Reference:
    """All rows of several samples."""
    arrays = [
        np.concatenate([np.empty(0, np.int32), *(getattr(part, name) for part in parts)])
        for name in ("tokens", "lengths", "whole_lengths")
    ]
    return Reference(arrays[0], arrays[1], arrays[2], all(part.is_held_out for part in parts))


def shortened(tokens: NDArray[np.int32], lengths: NDArray[np.int32], limit: int) -> Reference:
    """Rows with at most `limit` tokens each, as a sample of rows that did not make a vocabulary."""
    short, sizes = gathered(tokens, lengths, np.arange(len(lengths)), limit)
    return Reference(short, sizes, lengths.astype(np.int32), True)
