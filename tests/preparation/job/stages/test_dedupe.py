"""Which rows are kept, with which rating and in which split, compared with plain Python."""

from __future__ import annotations

from collections import Counter, defaultdict

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tenor.corpus.labels import make_rule
from tenor.errors import CorpusError, TenorError
from tenor.preparation.job.accounting import RowCounts, account, check_classes
from tenor.preparation.job.reading import PieceCounts
from tenor.preparation.job.stages.dedupe import UNRATED, DedupeResult, SplitTotals, assign_splits, choose
from tenor.store.manifest import SPLITS

# Few different hashes, so that rows are often equal, or equal in one half of the hash only.
Row = tuple[int, int, int]  # first half, second half, rating
ROWS = st.lists(st.tuples(st.integers(0, 3), st.integers(0, 2), st.integers(0, 3)), max_size=40)


@given(ROWS)
def test_one_row_of_each_text_with_its_most_frequent_rating(rows: list[Row]) -> None:
    votes: dict[tuple[int, int], Counter[int]] = defaultdict(Counter)
    for first, second, rating in rows:
        votes[first, second][rating] += 1
    expected = [(text, min(votes[text], key=lambda rating: (-votes[text][rating], rating))) for text in sorted(votes)]
    hashes = np.array([row[:2] for row in rows], np.uint64).reshape(-1, 2)
    order, ratings = choose(hashes, np.array([row[2] for row in rows], np.int64), True)
    assert [(rows[place][:2], rating) for place, rating in zip(order, ratings.tolist(), strict=True)] == expected


@given(ROWS)
def test_without_dedupe_rows_are_sorted_and_keep_their_ratings(rows: list[Row]) -> None:
    hashes = np.array([row[:2] for row in rows], np.uint64).reshape(-1, 2)
    order, ratings = choose(hashes, np.array([row[2] for row in rows], np.int64), False)
    assert [(*rows[place][:2], rating) for place, rating in zip(order, ratings.tolist(), strict=True)] == sorted(rows)


@given(ROWS, st.booleans())
def test_a_rated_text_has_no_unrated_copy(rows: list[Row], dedupe: bool) -> None:
    """Rating 0 stands for none here."""
    given = [UNRATED if rating == 0 else rating for *_, rating in rows]
    rated = {row[:2] for row in rows if row[2]}
    hashes = np.array([row[:2] for row in rows], np.uint64).reshape(-1, 2)
    order, ratings = choose(hashes, np.array(given, np.int64), dedupe)
    found = Counter((rows[place][:2], rating) for place, rating in zip(order, ratings.tolist(), strict=True))
    votes: dict[tuple[int, int], Counter[int]] = defaultdict(Counter)
    for (first, second, _), rating in zip(rows, given, strict=True):
        if rating != UNRATED or (first, second) not in rated:
            votes[first, second][rating] += 1
    if dedupe:
        best = {text: min(votes[text], key=lambda rating, text=text: (-votes[text][rating], rating)) for text in votes}
        assert found == Counter(best.items())
    else:
        assert found == {(text, rating): count for text in votes for rating, count in votes[text].items()}
    assert [rows[place][:2] for place in order] == sorted(rows[place][:2] for place in order)


def _spread(value: int) -> int:
    """MurmurHash3's finaliser with Python's own integers."""
    value = (value + 0x9E3779B97F4A7C15) % (1 << 64)
    for factor in (0xFF51AFD7ED558CCD, 0xC4CEB9FE1A85EC53):
        value = (value ^ (value >> 33)) * factor % (1 << 64)
    return value ^ (value >> 33)


def _split(text: int, seed: int, valid: float, test: float) -> str:
    place = (_spread(text ^ _spread(seed)) >> 11) / 2**53
    return "valid" if place < valid else "test" if place < valid + test else "train"


@given(
    st.lists(st.integers(0, (1 << 64) - 1), min_size=1, max_size=20),
    st.integers(0, (1 << 64) - 1),
    st.floats(0, 0.5),
    st.floats(0, 0.4),
)
def test_a_split_is_a_function_of_hash_and_seed(texts: list[int], seed: int, valid: float, test: float) -> None:
    found = assign_splits(np.array(texts, np.uint64), valid, test, seed)
    assert [SPLITS[split] for split in found] == [_split(text, seed, valid, test) for text in texts]


def test_an_accounting_that_does_not_balance_is_an_error() -> None:
    pieces = [
        PieceCounts(read=10, lines=10, bytes=0, rejected={"invalid JSON": 1}, empty=0, ratings=()),
        PieceCounts(read=5, lines=5, bytes=0, rejected={"bad rating": 1}, empty=1, ratings=()),
    ]
    expected = RowCounts(
        read=15,
        kept=8,
        duplicates=2,
        dropped={"empty": 1, "neutral": 2},
        rejected={"bad rating": 1, "invalid JSON": 1},
    )
    assert account(pieces, duplicates=2, neutral=2, kept=8) == expected
    for kept in (7, 9):
        with pytest.raises(TenorError, match="the accounting does not balance"):
            account(pieces, duplicates=2, neutral=2, kept=kept)


def _part(*classes: tuple[int, int]) -> DedupeResult:
    """A text part with so many rows of each class in each split."""
    return DedupeResult(rows=9, duplicates=0, neutral=0, splits=tuple(SplitTotals(0, 0, counts) for counts in classes))


def test_classes_are_counted_over_the_training_rows() -> None:
    rule = make_rule("binary", "1,2", "4,5")
    both, one = (3, 2), (3, 0)
    check_classes([_part(both, one, one)], rule, ["1", "5"])
    check_classes([_part(one, one, one), _part((0, 1), one, one)], rule, ["1", "5"])
    with pytest.raises(CorpusError, match="the training rows have only one class, negative"):
        check_classes([_part(one, both, both)], rule, ["1", "5"])
