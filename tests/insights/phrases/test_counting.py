"""Counts of phrases against plain dictionaries of tuples."""

from __future__ import annotations

import random
from collections import Counter

import numpy as np

from tenor.insights.phrases.choosing import growth
from tenor.insights.phrases.counting import BITS, LONGEST, BucketCounts, ExactCounts, PhraseRows, phrase_hashes
from tenor.insights.phrases.tracing import Member, Tracer
from tenor.insights.phrases.words import BREAK, CONTENT, END, INNER, START

KINDS = np.array([BREAK, BREAK, INNER, START, END, CONTENT, CONTENT, CONTENT, CONTENT], np.uint8)


def make_rows(count: int = 60, seed: int = 0) -> tuple[list[list[int]], PhraseRows]:
    rng = random.Random(seed)
    rows = [[rng.randrange(1, len(KINDS)) for _ in range(rng.randrange(0, 15))] for _ in range(count)]
    negative = np.array([rng.random() for _ in rows], np.float32)
    recent = np.array([rng.choice([-1, 0, 1]) for _ in rows], np.int8)
    tokens = np.array([token for row in rows for token in row], np.int32)
    return rows, PhraseRows(tokens, np.cumsum([len(row) for row in rows]), negative, recent)


def phrases_of(row: list[int]) -> set[tuple[int, ...]]:
    found = set()
    for start in range(len(row)):
        for size in range(1, LONGEST + 1):
            phrase = tuple(row[start : start + size])
            kinds = [KINDS[token] for token in phrase]
            ends_well = kinds[-1] == CONTENT or (kinds[-1] == END and size > 1)
            if len(phrase) == size and BREAK not in kinds and kinds[0] in (CONTENT, START) and ends_well:
                found.add(phrase)
    return found


def test_exact_counts_equal_a_dictionary() -> None:
    rows, given = make_rows()
    contributions = np.random.default_rng(0).normal(size=(len(given.tokens), 3)).astype(np.float32)
    counts = ExactCounts(np.ones(1 << BITS, np.bool_))
    for _ in range(2):  # a second block of rows continues the first
        counts.add(given, KINDS, contributions)
    number, negative, recent = Counter(), Counter(), Counter()
    for row, low, when in zip(rows, given.negative.tolist(), given.recent.tolist(), strict=True):
        for phrase in phrases_of(row):
            number[phrase] += 2
            negative[phrase] += 2 * low
            if when >= 0:
                recent[phrase, when] += 2
    found = {tuple(token for token in words if token): row for row, words in enumerate(counts.words.tolist())}
    assert set(found) == set(number)
    for phrase, row in found.items():
        figures = counts.figures[row]
        assert figures[0] == number[phrase] and figures[3] == recent[phrase, 0] and figures[4] == recent[phrase, 1]
        assert abs(figures[1] - negative[phrase]) < 1e-3


def test_buckets_hold_the_same_counts() -> None:
    rows, given = make_rows()
    buckets = BucketCounts()
    buckets.add(given, KINDS)
    number: Counter[tuple[int, ...]] = Counter(phrase for row in rows for phrase in phrases_of(row))
    for phrase, key in zip(number, phrase_hashes(number), strict=True):
        assert buckets.rows[key >> (64 - BITS)] == number[phrase]
    assert buckets.dated.tolist() == [int((given.recent == when).sum()) for when in (0, 1)]


def test_the_value_of_a_phrase_is_the_sum_of_the_n_grams_inside_it() -> None:
    tokens = np.array([5, 2, 6, 7], np.int32)
    contributions = np.arange(1.0, 13.0, dtype=np.float32).reshape(4, 3)
    counts = ExactCounts(np.ones(1 << BITS, np.bool_))
    counts.add(PhraseRows(tokens, np.array([4]), np.ones(1, np.float32), np.zeros(1, np.int8)), KINDS, contributions)
    found = {tuple(t for t in words if t): counts.figures[i, 2] for i, words in enumerate(counts.words.tolist())}
    assert found[(5,)] == 1
    assert found[5, 2, 6] == 1 + 2 + 3 + 4 + 5 + 7
    assert found[5, 2, 6, 7] == contributions.sum() - 6 - 2 * 0 - 9 - 8 - 11 - 12 + 6 + 8


def test_groups_count_a_row_once_and_keep_the_best_examples() -> None:
    rows, given = make_rows(200, seed=1)
    members = [Member(0, (5,), 1.0), Member(0, (6, 7), 3.0), Member(1, (8,), 2.0)]
    tracer = Tracer(members, [-1.0, 1.0], 2)
    periods = given.recent.astype(np.int32)
    tracer.add(given, periods, 0, np.zeros((len(given.tokens), 0), np.float32))
    trace = tracer.trace
    for group, wanted in enumerate([[(5,), (6, 7)], [(8,)]]):
        own = [
            (row, max(3.0 if len(phrase) == 2 else {5: 1.0, 8: 2.0}[phrase[0]] for phrase in held))
            for row, tokens in enumerate(rows)
            if (held := [p for p in wanted if any(tuple(tokens[i : i + len(p)]) == p for i in range(len(tokens)))])
        ]
        assert trace.rows[group] == len(own)
        assert abs(trace.contribution[group] - sum(value for _, value in own)) < 1e-9
        assert trace.by_period[group].tolist() == [sum(periods[row] == when for row, _ in own) for when in (0, 1)]
        low = given.negative
        scores = {row: value * float(low[row] if group == 0 else 1 - low[row]) for row, value in own}
        best = sorted(scores, key=lambda row: -scores[row])[: trace.examples.shape[1]]
        assert [scores[row] for row in trace.examples[group].tolist()] == [scores[row] for row in best]


def test_growth_bounds_the_chance_of_so_many_recent_rows() -> None:
    """Against the exact tail of the binomial distribution."""
    from math import comb

    for total, share in ((8, 0.05), (40, 0.2), (200, 0.5)):
        before_rows, recent_rows = 1000 * (1 - share), 1000 * share
        for recent in range(total + 1):
            z = growth(np.array([float(total - recent)]), np.array([float(recent)]), before_rows, recent_rows)[0]
            tail = sum(comb(total, k) * share**k * (1 - share) ** (total - k) for k in range(recent, total + 1))
            if z > 0:
                assert tail <= np.exp(-z * z / 2) * (1 + 1e-9)
            assert (z > 0) == (recent > total * share) or abs(recent - total * share) < 1e-9
