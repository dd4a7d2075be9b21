"""Intervals against a numerical solution of their definition, groups against a plain dictionary."""

from __future__ import annotations

import random
from pathlib import Path

import numpy as np
import pytest
from insights.stored import store_texts

from tenor.insights.shares import Z, by_group, over_time, wilson


@pytest.mark.parametrize(("count", "rows"), [(0, 5), (1, 10), (5, 5), (30, 100), (499, 1000)])
def test_the_interval_holds_the_shares_that_the_normal_test_does_not_reject(count: int, rows: int) -> None:
    grid = np.linspace(0, 1, 2_000_001)[1:-1]
    accepted = grid[np.abs(count / rows - grid) <= Z * np.sqrt(grid * (1 - grid) / rows)]
    low, high = wilson(count, rows)
    assert low == pytest.approx(accepted[0], abs=2e-6) and high == pytest.approx(accepted[-1], abs=2e-6)


def test_no_rows_say_nothing() -> None:
    assert wilson(0, 0) == (0.0, 1.0)


def test_groups_equal_a_dictionary_and_the_worst_come_first(tmp_path: Path) -> None:
    rng = random.Random(0)
    names = [rng.choice(["a", "b", "c", "d", "", None]) for _ in range(500)]
    negative = [float(rng.random() < {"a": 0.9, "b": 0.5}.get(name or "", 0.1)) for name in names]
    store, _ = store_texts(tmp_path, ["some words"] * 500, groups=names, negative=negative)
    try:
        groups, number, without = by_group(store)
    finally:
        store.close()
    assert (number, without) == (4, sum(not name for name in names))
    assert [group["group"] for group in groups[:2]] == ["a", "b"]
    for group in groups:
        own = [low for name, low in zip(names, negative, strict=True) if name == group["group"]]
        assert (group["rows"], group["negative_share"]) == (len(own), sum(own) / len(own))
        assert (group["low"], group["high"]) == wilson(sum(own), len(own))
    assert [group["low"] for group in groups] == sorted((group["low"] for group in groups), reverse=True)


def test_a_group_of_one_bad_review_is_not_the_worst(tmp_path: Path) -> None:
    names = ["single"] + ["many"] * 50
    store, _ = store_texts(tmp_path, ["words"] * 51, groups=names, negative=[1.0] + [1.0] * 40 + [0.0] * 10)
    try:
        assert [group["group"] for group in by_group(store)[0]] == ["many", "single"]
    finally:
        store.close()


def test_shares_over_time_keep_empty_periods() -> None:
    found = over_time(np.array([True, False, True, True]), np.array([0, 0, 2, -1], np.int32), ["a", "b", "c"])
    assert [(row["rows"], row["negative_share"]) for row in found] == [(2, 0.5), (0, None), (1, 1.0)]
