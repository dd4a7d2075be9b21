"""Reliability bins against a loop over the rows, and the calibration error of cases computed by hand."""

from __future__ import annotations

import random
from dataclasses import asdict

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tenor.evaluation.calibration import ReliabilityBin, expected_calibration_error, reliability
from tenor.evaluation.metrics import measure
from tenor.evaluation.scores import Scores

CHANCES = st.lists(st.tuples(st.floats(0, 1, width=32), st.integers(0, 1)), min_size=1, max_size=60)


def naive(chances: list[float], events: list[bool], num_bins: int) -> list[dict[str, float]]:
    """Collect the rows bin by bin, in Python."""
    bins = []
    for number in range(num_bins):
        low, high = number / num_bins, (number + 1) / num_bins
        inside = [
            (c, e)
            for c, e in zip(chances, events, strict=True)
            if low <= c < high or (number == num_bins - 1 and c == 1)
        ]
        if inside:
            mean = sum(c for c, _ in inside) / len(inside)
            share = sum(e for _, e in inside) / len(inside)
            bins.append({"low": low, "high": high, "rows": len(inside), "probability": mean, "share": share})
    return bins


def same(found: list[ReliabilityBin], expected: list[dict[str, float]]) -> None:
    assert len(found) == len(expected)
    for one, other in zip(found, expected, strict=True):
        assert asdict(one) == pytest.approx(other, abs=1e-8)


@given(CHANCES)
def test_bins_of_two_classes_agree_with_a_loop(rows: list[tuple[float, int]]) -> None:
    chances, labels = (list(column) for column in zip(*rows, strict=True))
    expected = naive(chances, [label == 1 for label in labels], 16)  # a power of two, so that no edge is rounded
    for shape in (np.array(chances, np.float32), np.array([[1 - c, c] for c in chances], np.float32)):
        same(reliability(shape, np.array(labels), 16), expected)


def test_bins_of_many_classes_use_the_predicted_one() -> None:
    rng = np.random.default_rng(1)
    chances = rng.dirichlet([1, 1, 1], 500).astype(np.float32)
    labels = rng.integers(0, 3, 500)
    top = [float(max(row)) for row in chances]
    events = [int(np.argmax(row)) == label for row, label in zip(chances, labels, strict=True)]
    same(reliability(chances, labels, 8), naive(top, events, 8))


def test_the_error_by_hand() -> None:
    bins = reliability(np.array([0.1, 0.1, 0.1, 0.1, 0.9, 0.9], np.float32), np.array([0, 0, 0, 1, 1, 0]))
    # Four rows at 0.1 of which 1/4 came true, two at 0.9 of which 1/2 came true.
    assert expected_calibration_error(bins) == pytest.approx((4 * 0.15 + 2 * 0.4) / 6, abs=1e-7)
    assert expected_calibration_error([]) == 0.0


def test_honest_probabilities_have_a_small_error_and_overconfident_ones_a_large_one() -> None:
    rng = np.random.default_rng(2)
    chances = rng.random(100_000)
    labels = (rng.random(100_000) < chances).astype(np.int64)
    honest = expected_calibration_error(reliability(chances.astype(np.float32), labels))
    sure = expected_calibration_error(reliability(np.round(chances).astype(np.float32), labels))
    assert honest < 0.01
    assert sure == pytest.approx(0.25, abs=0.01)  # E|p − round(p)|


def test_the_order_of_the_rows_does_not_matter_to_the_bit() -> None:
    rng = np.random.default_rng(3)
    rows = list(zip(rng.random(5000).astype(np.float32), rng.integers(0, 2, 5000), strict=True))
    found = set()
    for seed in range(4):
        random.Random(seed).shuffle(rows)
        chances, labels = (np.array(column) for column in zip(*rows, strict=True))
        found.add(tuple(reliability(chances, labels)))
    assert len(found) == 1


def test_metrics_have_the_bins_and_the_error_as_json_values() -> None:
    scores = Scores()
    scores.add(np.array([0.2, 0.7, 0.7], np.float32), np.array([0, 1, 0]))
    got = measure(scores, ("negative", "positive")).as_dict()
    assert [one["rows"] for one in got["reliability"]] == [1, 2]
    assert got["calibration_error"] == pytest.approx((0.2 + 2 * 0.2) / 3, abs=1e-7)
