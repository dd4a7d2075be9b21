"""Subsampling and noise beside their formulas."""

import numpy as np
import pytest

from tenor.embedding.kernels.noise import FULL, POWER, keep_thresholds, noise_table


def test_frequent_words_are_left_out_by_the_formula_of_word2vec() -> None:
    counts = np.array([9000, 900, 90, 10])
    chances = keep_thresholds(counts, 0.01) / FULL
    for chance, share in zip(chances, counts / 10_000, strict=True):
        assert chance == pytest.approx(min(1.0, (np.sqrt(share / 0.01) + 1) * 0.01 / share), abs=1e-6)
    assert (keep_thresholds(counts, 0.0) == FULL).all()


@pytest.mark.parametrize("counts", [[1], [1, 1], [5, 3, 2], [10**9, 1], list(range(1, 500))])
def test_noise_is_drawn_by_a_power_of_the_counts(counts: list[int]) -> None:
    """The chance of each word, added up over all places of the table."""
    table = noise_table(np.array(counts))
    own, aliases = (table % (1 << 32)) / (1 << 24), (table >> np.uint64(32)).astype(np.int64)
    chances = own + np.bincount(aliases, 1 - own, minlength=len(counts))
    expected = np.array(counts, float) ** POWER
    np.testing.assert_allclose(chances / len(counts), expected / expected.sum(), atol=1e-6)
