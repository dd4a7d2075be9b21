"""Expected touched rows against batches that are really drawn."""

import numpy as np
import pytest

from tenor.planning.costs.touched_rows import LengthGroup, RowFrequencies, Spectrum, scaled_rows, spectrum_of


def corpus(reviews: int, words: int, seed: int = 0) -> np.ndarray:
    """(reviews, words) which review contains which word; frequent words are in most reviews, others in few."""
    chances = 0.9 / np.arange(1, words + 1) ** 0.8
    return np.random.default_rng(seed).random((reviews, words)) < chances


def drawn(contains: np.ndarray, batch: int, times: int) -> float:
    """The mean number of words in batches of different reviews."""
    rng = np.random.default_rng(1)
    return float(np.mean([contains[rng.permutation(len(contains))[:batch]].any(axis=0).sum() for _ in range(times)]))


@pytest.mark.parametrize("batch", [1, 8, 64, 300, 500])
def test_the_formula_agrees_with_batches_that_are_drawn(batch: int) -> None:
    contains = corpus(500, 800)
    group = LengthGroup(500, 10.0, {"words": spectrum_of(contains.sum(axis=0))})
    assert group.expected("words", batch, is_whole=True) == pytest.approx(drawn(contains, batch, 300), rel=0.01)


def test_new_reviews_bring_other_words_than_the_same_ones_again() -> None:
    """With many more reviews like the counted ones, words may repeat; brute force over the probabilities."""
    counts = np.array([1, 2, 50, 100])
    group = LengthGroup(100, 10.0, {"words": spectrum_of(counts)})
    brute = sum(1 - (1 - count / 100) ** 30 for count in counts)
    assert group.expected("words", 30, is_whole=False) == pytest.approx(brute)
    assert group.expected("words", 100, is_whole=True) == pytest.approx(4)


def test_a_spectrum_counts_rows_by_how_often_they_occur() -> None:
    counts = np.array([0, 3, 1, 3, 0, 7])
    assert spectrum_of(counts) == Spectrum((1, 3, 7), (1, 2, 1))
    assert spectrum_of(counts, counts >= 2) == Spectrum((3, 7), (2, 1))


def test_groups_of_lengths_matter_and_large_batches_mix_them() -> None:
    """Short reviews use few words. Batches of one length touch fewer words than batches of all lengths."""
    short, long = corpus(400, 50, 1), corpus(400, 600, 2)
    short = np.hstack([short, np.zeros((400, 550), bool)])
    groups = tuple(LengthGroup(400, 1.0, {"words": spectrum_of(one.sum(axis=0))}) for one in (short, long))
    both = np.vstack([short, long])
    found = RowFrequencies(groups, LengthGroup(800, 1.0, {"words": spectrum_of(both.sum(axis=0))}))
    by_length = (drawn(short, 32, 200) + drawn(long, 32, 200)) / 2
    assert found.expected("words", 32) == pytest.approx(by_length, rel=0.01)
    assert found.together("words", 64) == pytest.approx(drawn(both, 64, 200), rel=0.01)
    assert found.expected("words", 600) == pytest.approx(drawn(both, 600, 20), rel=0.01)  # larger than a group


def test_without_frequencies_rows_grow_by_a_power_up_to_the_table() -> None:
    assert scaled_rows(100, 1.0, 10_000, 0.6) == pytest.approx(100)
    assert scaled_rows(100, 2.0, 10**9, 0.5) == pytest.approx(100 * 2**0.5, rel=1e-3)
    assert 9_990 < scaled_rows(5_000, 1e6, 10_000, 0.6) <= 10_000
