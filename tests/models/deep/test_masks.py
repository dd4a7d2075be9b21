"""Dropout masks depend only on the sample, whatever its batch and order, and are uniformly random."""

from __future__ import annotations

import numpy as np
import torch

from tenor.models.deep.masks import dropout_mask, sample_keys, uniform


def test_a_sample_has_the_same_mask_in_any_batch() -> None:
    rows = np.arange(50)
    together = uniform(sample_keys(3, 1, rows), 2, 64)
    for row in (0, 17, 49):
        alone = uniform(sample_keys(3, 1, np.array([row])), 2, 64)
        np.testing.assert_array_equal(alone[0], together[row])


def test_seed_epoch_row_and_stream_all_matter() -> None:
    base = uniform(sample_keys(0, 0, np.array([5])), 0, 64)
    others = [(1, 0, 5, 0), (0, 1, 5, 0), (0, 0, 6, 0), (0, 0, 5, 1)]
    for seed, epoch, row, stream in others:
        assert not np.array_equal(uniform(sample_keys(seed, epoch, np.array([row])), stream, 64), base)


def test_numbers_are_uniform_and_columns_unrelated() -> None:
    numbers = uniform(sample_keys(0, 0, np.arange(4000)), 0, 50)
    counts, _ = np.histogram(numbers, bins=20, range=(0, 1))
    expected = numbers.size / 20
    assert ((counts - expected) ** 2 / expected).sum() < 50  # chi-square, 19 degrees of freedom: p about 1e-4
    correlation = np.corrcoef(numbers.T) - np.eye(50)
    assert np.abs(correlation).max() < 0.08


def test_a_mask_keeps_the_mean() -> None:
    mask = dropout_mask(sample_keys(0, 0, np.arange(2000)), 1, 100, 0.3, torch.float64)
    assert set(mask.unique().tolist()) == {0.0, 1 / 0.7}
    assert abs(float(mask.mean()) - 1.0) < 0.01
