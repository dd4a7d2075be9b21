"""McNemar's test against exact fractions, and a paired comparison counted row by row."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tenor.evaluation.paired import mcnemar, paired_test


def reference(only_first: int, only_second: int) -> tuple[Fraction, Fraction]:
    """Add up the probabilities of all results that are at least as far from the middle, as exact fractions."""
    total = only_first + only_second
    chances = [Fraction(math.comb(total, heads), 2**total) for heads in range(total + 1)]
    far = abs(only_first - only_second)
    tail = sum((c for heads, c in enumerate(chances) if abs(2 * heads - total) >= far), Fraction(0))
    observed = sum((c for heads, c in enumerate(chances) if abs(2 * heads - total) == far), Fraction(0))
    return tail, tail - observed / 2


@given(st.integers(0, 120), st.integers(0, 120))
def test_p_values_agree_with_exact_fractions(only_first: int, only_second: int) -> None:
    exact, mid = mcnemar(only_first, only_second)
    wanted, wanted_mid = reference(only_first, only_second)
    assert exact == pytest.approx(float(wanted), rel=1e-10)
    if only_first != only_second:
        assert mid == pytest.approx(float(wanted_mid), rel=1e-10)
    else:
        assert mid == pytest.approx(1.0)  # the observed result is in the middle: no evidence at all


def test_published_values() -> None:
    # Fagerland, Lydersen and Laake 2013, table 3 (airway hyper-responsiveness): 1 against 7 discordant pairs.
    exact, mid = mcnemar(1, 7)
    assert (round(exact, 4), round(mid, 4)) == (0.0703, 0.0391)


@pytest.mark.parametrize("shift", [0, 500, 3000])
def test_large_counts_agree_with_the_normal_distribution(shift: int) -> None:
    total = 1_000_000
    _, mid = mcnemar(total // 2 - shift, total // 2 + shift)
    assert mid == pytest.approx(math.erfc(2 * shift / math.sqrt(2 * total)), rel=0.01)


def test_a_comparison_by_hand() -> None:
    labels = np.array([0, 0, 1, 1, 2, 2, 2, 0])
    first = np.array([0, 1, 1, 0, 2, 0, 1, 0])
    second = np.array([0, 0, 1, 0, 0, 1, 2, 0])
    got = paired_test(first, second, labels)
    assert (got.rows, got.both_right, got.only_first, got.only_second) == (8, 3, 1, 2)
    assert got.flipped == 4  # row 5 is wrong both times, in different ways
    assert got.difference == pytest.approx((second == labels).mean() - (first == labels).mean())
    assert got.low < got.difference < got.high and got.better == "neither"


def test_the_verdict_names_the_better_one() -> None:
    labels = np.zeros(100, np.int64)
    worse = np.repeat([1, 0], [20, 80])
    assert paired_test(worse, labels, labels).better == "second"
    assert paired_test(labels, worse, labels).better == "first"
    assert paired_test(worse, worse, labels).better == "neither"


def test_intervals_cover_the_true_difference() -> None:
    rng = np.random.default_rng(4)
    covered = 0
    for _ in range(400):
        labels = np.ones(300, np.int64)
        first, second = rng.random(300) < 0.80, rng.random(300) < 0.85
        got = paired_test(first.astype(np.int64), second.astype(np.int64), labels)
        covered += got.low <= 0.05 <= got.high
    assert 0.92 <= covered / 400 <= 0.98
