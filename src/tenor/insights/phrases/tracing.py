"""The last pass over the rows: what each group of phrases adds up to, over time too, and rows that show it best."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tenor.compiled import compiled
from tenor.insights.phrases.counting import LONGEST, SLOTS, PhraseRows, find_slot, phrase_hashes, span_value
from tenor.models.wide.hashing import extended_hash

EXAMPLES = 8  # rows kept per group; the report shows those with different texts


@dataclass(frozen=True)
class Member:
    """A phrase of a group."""

    group: int
    tokens: tuple[int, ...]
    strength: float  # of each occurrence, if the model gives no contributions


@dataclass(frozen=True)
class Trace:
    """Figures of each group of phrases."""

    rows: NDArray[np.int64]  # with any phrase of the group
    negative: NDArray[np.float64]  # sum of their probabilities to be negative
    contribution: NDArray[np.float64]  # sum over rows of the strongest phrase's contribution towards the side
    by_period: NDArray[np.int64]  # (groups, periods) rows
    examples: NDArray[np.int64]  # (groups, EXAMPLES) numbers of rows, -1 for none


class Tracer:
    """Follows groups of phrases through the rows. A row counts once per group."""

    def __init__(self, members: Sequence[Member], signs: Sequence[float], num_periods: int) -> None:
        """Prepare.

        Args:
            members: The phrases.
            signs: Of each group: -1 for the negative side, 1 for the positive one, 0 for groups of no side.
            num_periods: Rows have periods below this number, or -1.
        """
        count = len(signs)
        self._keys, self._ids = np.zeros(SLOTS, np.uint64), np.full(SLOTS, -1, np.int32)
        self._groups = np.array([member.group for member in members], np.int64)
        self._strengths = np.array([member.strength for member in members], np.float64)
        for number, key in enumerate(phrase_hashes(member.tokens for member in members)):
            slot = _slot(self._keys, self._ids, np.uint64(key))
            self._keys[slot], self._ids[slot] = key, number
        self._signs = np.array(signs, np.float64)
        self._best = np.full((count, EXAMPLES), -np.inf)
        self._value, self._seen = np.zeros(count), np.zeros(count, np.int64)
        self.trace = Trace(
            np.zeros(count, np.int64),
            np.zeros(count),
            np.zeros(count),
            np.zeros((count, num_periods), np.int64),
            np.full((count, EXAMPLES), -1, np.int64),
        )

    def add(self, rows: PhraseRows, periods: NDArray[np.int32], first: int, weights: NDArray[np.float32]) -> None:
        """Follow the phrases through rows, of which the first has the number `first`."""
        trace = self.trace
        _follow(
            rows.tokens, rows.ends, rows.negative, periods, first, weights, self._keys, self._ids, self._groups,
            self._strengths, self._signs, self._value, self._seen, self._best, trace.rows, trace.negative,
            trace.contribution, trace.by_period, trace.examples,
        )  # fmt: skip


@compiled
def _slot(keys: Any, ids: Any, state: Any) -> Any:
    return find_slot(keys, ids, state)


@compiled
def _follow(
    tokens: Any, ends: Any, negative: Any, periods: Any, first_row: int, weights: Any, keys: Any, ids: Any, groups: Any,
    strengths: Any, signs: Any, value: Any, seen: Any, best: Any, rows: Any, sums: Any, contribution: Any,
    by_period: Any, examples: Any,
) -> None:  # fmt: skip
    start = 0
    found = np.empty(len(signs), np.int64)
    for row in range(len(ends)):
        stamp, count = first_row + row + 1, 0
        for first in range(start, ends[row]):
            state = np.uint64(0)
            for at in range(first, min(first + LONGEST, ends[row])):
                state = extended_hash(state, tokens[at])
                phrase = ids[find_slot(keys, ids, state)]
                if phrase < 0:
                    continue
                group = groups[phrase]
                own = strengths[phrase]
                if weights.shape[1] > 0 and signs[group] != 0.0:
                    own = signs[group] * span_value(weights, first, at)
                if seen[group] != stamp:
                    seen[group] = stamp
                    found[count] = group
                    count += 1
                    value[group] = own
                elif own > value[group]:
                    value[group] = own
        for i in range(count):
            group = found[i]
            rows[group] += 1
            sums[group] += negative[row]
            contribution[group] += value[group]
            if periods[row] >= 0:
                by_period[group, periods[row]] += 1
            _keep_best(
                best[group], examples[group], _example_score(value[group], signs[group], negative[row]), stamp - 1
            )
        start = ends[row]


@compiled
def _example_score(value: Any, sign: Any, negative: Any) -> Any:
    """A good example has a strong phrase, and the model is sure of its side."""
    if sign < 0.0:
        return value * negative
    if sign > 0.0:
        return value * (1.0 - negative)
    return value


@compiled
def _keep_best(best: Any, examples: Any, score: Any, row: Any) -> None:
    """Insert a row into the best ones, in falling order."""
    if score <= best[-1]:
        return
    at = len(best) - 1
    while at > 0 and best[at - 1] < score:
        best[at], examples[at] = best[at - 1], examples[at - 1]
        at -= 1
    best[at], examples[at] = score, row
