"""Thresholds against every threshold that could be chosen, and coverage against a count by hand."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.typing import NDArray

from tenor.errors import UsageError
from tenor.evaluation.decision import choose_threshold, confidence, decide
from tenor.evaluation.goal import Goal
from tenor.evaluation.metrics import measure, measure_covered
from tenor.evaluation.scores import Scores

CLASSES = ("negative", "positive")


def some_rows(positive: float = 0.2, signal: float = 0.4) -> tuple[NDArray[np.float32], NDArray[np.int64]]:
    """A share of positive rows; probabilities have ties, and are too high."""
    rng = np.random.default_rng(5)
    labels = (rng.random(200) < positive).astype(np.int64)
    chances = signal * labels + (1.0 - signal) * rng.random(200)
    return np.round(np.clip(chances, 0, 1), 2).astype(np.float32), labels


def by_hand(goal: str, limit: float, chances: NDArray[np.float32], labels: NDArray[np.int64]) -> float:
    scores = Scores(limit)
    scores.add(chances, labels)
    found = measure(scores, CLASSES)
    if goal == "accuracy":
        return found.accuracy
    if goal == "f1-macro":
        return sum(one["f1"] for one in found.per_class.values()) / 2
    is_reached = found.per_class["positive"]["precision"] >= float(goal.split("=")[1])
    return found.per_class["positive"]["recall"] if is_reached else 0.0


@pytest.mark.parametrize("goal", ["accuracy", "f1-macro", "recall@precision=0.6", "recall@precision=0.95"])
@pytest.mark.parametrize(("positive", "signal"), [(0.2, 0.4), (0.5, 0.2)])
def test_no_other_threshold_is_better(goal: str, positive: float, signal: float) -> None:
    chances, labels = some_rows(positive, signal)
    chosen = choose_threshold(Goal.parse(goal), chances, labels)
    best = max(by_hand(goal, limit, chances, labels) for limit in np.arange(-0.005, 1.01, 0.005))
    assert by_hand(goal, chosen, chances, labels) == pytest.approx(best)
    assert best > 0 or signal < 0.4  # a precision may be out of reach


def test_of_equally_good_thresholds_the_middle_one_is_chosen() -> None:
    chances, labels = np.array([0.1, 0.2, 0.9], np.float32), np.array([0, 0, 1])
    assert choose_threshold(Goal.parse("accuracy"), chances, labels) == pytest.approx(0.55)


def test_a_precision_out_of_reach_gives_the_highest_one() -> None:
    chances, labels = np.array([0.2, 0.4, 0.6, 0.8], np.float32), np.array([1, 0, 1, 0])
    chosen = choose_threshold(Goal.parse("recall@precision=0.95"), chances, labels)
    assert decide(chances, chosen).tolist() in ([1, 1, 1, 1], [0, 0, 1, 1])  # a precision of one half


@pytest.mark.parametrize(
    "text", ["", "f1", "recall@precision=", "recall@precision=x", "recall@precision=1.5", "recall"]
)
def test_an_unknown_goal_is_refused(text: str) -> None:
    with pytest.raises(UsageError, match="optimise cannot be"):
        Goal.parse(text)


def test_labels_and_their_probabilities() -> None:
    chances = np.array([0.3, 0.7, 0.5], np.float32)
    pairs = np.stack([1 - chances, chances], axis=1)
    for given in (chances, pairs):
        labels = decide(given, 0.6)
        assert labels.tolist() == [0, 1, 0]
        assert confidence(given, labels) == pytest.approx([0.7, 0.7, 0.5])
    assert decide(np.array([[0.2, 0.5, 0.3]], np.float32), 0.9).tolist() == [1]  # more classes have no threshold


def test_coverage_and_the_accuracy_of_what_is_answered() -> None:
    scores = Scores()
    scores.add(np.array([0.95, 0.6, 0.45, 0.1, 0.2]), np.array([1, 1, 0, 0, 1]))
    assert measure_covered(scores, 0.7) == {"abstain_below": 0.7, "coverage": 0.6, "covered_accuracy": 2 / 3}
    assert measure_covered(scores, 0.0)["coverage"] == 1.0
    assert measure_covered(scores, 1.0)["covered_accuracy"] is None


def test_the_mean_absolute_error_of_stars() -> None:
    scores = Scores()
    scores.add(np.eye(5)[[0, 4, 2, 4]], np.array([0, 3, 2, 0]))
    found = measure(scores, ("1", "2", "3", "4", "5"))
    assert found.mean_absolute_error == (0 + 1 + 0 + 4) / 4
    assert found.majority_baseline["mean_absolute_error"] == (0 + 3 + 2 + 0) / 4  # it always says "1"
    scores = Scores()
    scores.add(np.array([0.9, 0.1]), np.array([1, 1]))
    found = measure(scores, CLASSES)
    assert found.mean_absolute_error is None and "mean_absolute_error" not in found.majority_baseline
