"""The order of batches: each row once, a pure function of (seed, epoch, k), similar lengths together."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tenor.store.order import Order, split


def make_order(num_rows: int, batch_size: int = 32, seed: int = 0, **sizes: int) -> Order:
    lengths = np.random.default_rng(1).integers(1, 200, num_rows).astype(np.int32)
    return Order(lengths, batch_size, seed, **sizes)


@given(
    st.integers(1, 700),
    st.integers(1, 64),
    st.integers(0, 9),
    st.integers(0, 3),
    st.integers(1, 300),
    st.integers(1, 50),
)
def test_every_row_comes_once_per_epoch(rows: int, batch: int, seed: int, epoch: int, window: int, block: int) -> None:
    order = make_order(rows, batch, seed, window=window, block=block)
    batches = [order.batch(epoch, k) for k in range(order.num_batches)]
    assert sorted(np.concatenate(batches).tolist()) == list(range(rows))
    assert sorted(map(len, batches), reverse=True)[:-1] == [batch] * (len(batches) - 1)


def test_a_batch_depends_only_on_seed_epoch_and_number() -> None:
    walked = make_order(1000, window=256, block=16)
    for k in range(walked.num_batches):
        walked.batch(2, k)
    fresh = make_order(1000, window=256, block=16)
    np.testing.assert_array_equal(fresh.batch(2, 17), walked.batch(2, 17))
    assert set(fresh.batch(3, 17)) != set(fresh.batch(2, 17))
    assert set(make_order(1000, seed=1).batch(2, 17)) != set(make_order(1000).batch(2, 17))


def test_epochs_of_a_corpus_in_one_block_differ() -> None:
    order = Order(np.full(64, 7, np.int32), 8, 0)
    first, second = ([set(order.batch(epoch, k).tolist()) for k in range(8)] for epoch in (0, 1))
    assert not any(batch in second for batch in first)


def test_batches_have_similar_lengths_longest_first_and_are_shuffled() -> None:
    order = make_order(4096)
    batches = [order.lengths[order.batch(0, k)] for k in range(order.num_batches)]
    assert all((np.diff(lengths) <= 0).all() for lengths in batches)
    padded = sum(len(lengths) * int(lengths[0]) for lengths in batches)
    assert padded < 1.03 * order.lengths.sum()
    means = [lengths.mean() for lengths in batches]
    assert abs(np.corrcoef(means, range(len(means)))[0, 1]) < 0.3


def test_the_first_window_mixes_rows_of_the_whole_corpus() -> None:
    order = make_order(40_000, window=4096, block=64)
    first = np.concatenate([order.batch(0, k) for k in range(4096 // 32)])
    assert np.histogram(first, bins=8, range=(0, 40_000))[0].min() > 100


@given(st.lists(st.integers(1, 300), min_size=1, max_size=300), st.lists(st.integers(0, 9), min_size=1, max_size=9))
def test_a_split_covers_the_batch_once(lengths: list[int], shares: list[int]) -> None:
    if not any(shares):
        shares[0] = 1
    ordered = np.array(sorted(lengths, reverse=True), dtype=np.int32)
    slices = split(ordered, np.array(shares, dtype=np.float64))
    assert len(slices) == len(shares)
    assert np.concatenate([np.arange(len(ordered))[s] for s in slices]).tolist() == list(range(len(ordered)))
    assert all(s.stop == s.start for s, share in zip(slices, shares, strict=True) if share == 0)


@pytest.mark.parametrize("shares", [[1, 1], [1, 2], [5, 2, 1], [1] * 7])
def test_padded_tokens_follow_the_shares(shares: list[int]) -> None:
    lengths = np.array(sorted(np.random.default_rng(0).integers(20, 400, 512), reverse=True), dtype=np.int32)
    costs = np.array([(s.stop - s.start) * int(lengths[s.start]) for s in split(lengths, np.array(shares, float))])
    wanted = np.array(shares) / sum(shares)
    np.testing.assert_allclose(costs / costs.sum(), wanted, atol=0.02)


def test_each_epoch_of_one_window_is_shuffled_differently() -> None:
    """If all rows have the same length, epochs differ only by the shuffle within the window."""
    order = Order(np.full(640, 7, np.int32), 32, seed=0, block=4096)
    first, second = ([set(order.batch(epoch, k).tolist()) for k in range(20)] for epoch in (0, 1))
    assert max(len(one & other) for one in first for other in second) < 12
