"""The domain classifier: its interval against a naive DeLong, and samples that are alike or not."""

from __future__ import annotations

import random

import numpy as np
import pytest

from tenor.insights.domain import Z, auc_interval, distinct, domain_auc, exceeds_chance, joined
from tenor.store.reference import Reference


def naive(above: np.ndarray, below: np.ndarray) -> tuple[float, float]:  # type: ignore[type-arg]
    """The AUC and its standard error by comparing all pairs (DeLong et al. 1988)."""
    pairs = (above[:, None] > below[None, :]) + 0.5 * (above[:, None] == below[None, :])
    spread = pairs.mean(axis=1).var(ddof=1) / len(above) + pairs.mean(axis=0).var(ddof=1) / len(below)
    return float(pairs.mean()), float(np.sqrt(spread))


@pytest.mark.parametrize("seed", range(4))
def test_the_interval_is_that_of_delong(seed: int) -> None:
    rng = np.random.default_rng(seed)
    above, below = rng.integers(0, 20, 60) / 20, rng.integers(0, 15, 45) / 20  # with ties
    auc, low, high = auc_interval(above.astype(np.float32), below.astype(np.float32))
    expected, error = naive(above.astype(np.float32), below.astype(np.float32))
    assert auc == pytest.approx(expected)
    assert (low, high) == pytest.approx((expected - Z * error, min(1.0, expected + Z * error)))


def sample(rows: int, seed: int, shift: int = 0, held_out: bool = True) -> Reference:
    rng = random.Random(seed)
    made = [[min(int(rng.expovariate(0.05)) + 2, 200) + shift for _ in range(rng.randint(6, 30))] for _ in range(rows)]
    lengths = np.array([len(row) for row in made], np.int32)
    return Reference(np.array([token for row in made for token in row], np.int32), lengths, lengths, held_out)


def test_samples_of_the_same_kind_cannot_be_told_apart() -> None:
    found = [domain_auc(sample(400, seed), sample(400, 100 + seed), seed) for seed in range(5)]
    assert all(auc < 0.6 for auc, _, _ in found)
    assert sum(low < 0.5 for _, low, _ in found) >= 4


def test_an_auc_must_be_above_that_of_random_divisions() -> None:
    alike, other = (sample(150, 0), sample(150, 1)), (sample(150, 0), sample(150, 1, shift=10))
    assert not exceeds_chance(*alike, 0.5, 0)
    assert exceeds_chance(*other, domain_auc(*other, 0)[0], 0)


def test_other_words_are_told_apart() -> None:
    auc, low, _ = domain_auc(sample(300, 0), sample(300, 1, shift=10), 0)
    assert auc > 0.9 and low > 0.8


def test_reviews_that_both_sides_have_hide_nothing() -> None:
    """New exports often contain the old reviews too."""
    old, new = sample(300, 0), sample(300, 1, shift=10)
    assert domain_auc(old, old, 0)[0] == pytest.approx(0.5, abs=0.02)
    half = joined([old.take(np.arange(150)), new.take(np.arange(150))])
    assert domain_auc(old, half, 0)[0] == pytest.approx(0.75, abs=0.06)  # 0.5 for one half, 1 for the other


def test_unknown_words_do_not_give_away_a_sample_that_made_the_vocabulary() -> None:
    """In the training rows no word is unknown; new rows of the same kind have unknown words (id 1)."""
    one, other = sample(400, 0, held_out=False), sample(400, 1)
    other.tokens[np.random.default_rng(0).random(len(other.tokens)) < 0.1] = 1
    assert domain_auc(one, other, 0)[0] < 0.6
    seen = Reference(one.tokens, one.lengths, one.whole_lengths, True)
    assert domain_auc(seen, other, 0)[0] > 0.8


def test_distinct_keeps_each_review_once_and_samples_without_favour() -> None:
    tokens = np.array([5, 6, 7, 5, 6, 7, 5, 6, 6, 5, 8], np.int32)
    lengths = np.array([3, 3, 2, 2, 1], np.int32)
    given = Reference(tokens, lengths, lengths, True)
    rows = lambda found: np.split(found.tokens, np.cumsum(found.lengths)[:-1])  # noqa: E731
    assert sorted(map(tuple, rows(distinct(given, 10, 0)))) == [(5, 6), (5, 6, 7), (6, 5), (8,)]
    chosen = {tuple(rows(distinct(given, 1, seed))[0].tolist()) for seed in range(40)}
    assert len(chosen) == 4
