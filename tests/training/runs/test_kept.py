"""A run keeps the weights of the best epoch or of the last, and measures the test split with the kept weights."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from helpers.strategies import POINTS, train_here
from helpers.training import events, weights
from torch import nn

from tenor.evaluation.metrics import Metrics, measure
from tenor.evaluation.scores import Scores
from tenor.groups import Group
from tenor.training.loop import _score
from tenor.training.tasks.points import CLASSES, Points

Weights = dict[str, np.ndarray]


def with_accuracy(accuracy: float) -> Metrics:
    """Metrics of 100 rows with the given share of correct predictions."""
    labels = np.arange(100) % 4
    said = np.where(np.arange(100) < round(100 * accuracy), labels, (labels + 1) % 4)
    scores = Scores()
    scores.add(np.eye(4)[said], labels)
    return measure(scores, CLASSES)


class Scripted:
    """Replaces the measurement: returns given accuracies and remembers the measured weights."""

    def __init__(self, accuracies: list[float]) -> None:
        self.accuracies = iter(accuracies)
        self.seen: dict[str, list[Weights]] = {"valid": [], "test": []}

    def __call__(self, model: nn.Module, split: str, group: Group) -> Metrics:
        self.seen[split].append({name: w.detach().numpy().copy() for name, w in model.named_parameters()})
        return with_accuracy(next(self.accuracies) if split == "valid" else 0.25)


@pytest.mark.parametrize(
    ("keep", "accuracies", "epoch"),
    [
        ("best", [0.5, 0.9, 0.7], 2),
        ("best", [0.9, 0.5, 0.7], 1),
        ("best", [0.5, 0.8, 0.8], 3),  # of equal ones the later
        ("last", [0.5, 0.9, 0.7], 3),
    ],
)
def test_the_weights_kept(
    keep: str, accuracies: list[float], epoch: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    scripted = Scripted(accuracies)
    monkeypatch.setattr(Points, "measure", lambda self, *call: scripted(*call))
    monkeypatch.setattr(Points, "score", lambda *call: None)
    result = train_here(tmp_path / "run", replace(POINTS, epochs=3, batch_size=10_000, keep=keep))
    expected = scripted.seen["valid"][epoch - 1]
    for name, found in weights(tmp_path / "run").items():
        np.testing.assert_array_equal(found, expected[name])
        np.testing.assert_array_equal(scripted.seen["test"][0][name], expected[name])
        assert all(not np.array_equal(found, other[name]) for other in scripted.seen["valid"] if other is not expected)
    assert (result["kept_epoch"], result["valid"]["accuracy"]) == (epoch, accuracies[epoch - 1])
    told = [event["valid"]["accuracy"] for event in events(tmp_path / "run", "epoch")]
    assert told == accuracies


def two_classes(auc_order: list[float], labels: list[int]) -> Metrics:
    scores = Scores()
    scores.add(np.array(auc_order), np.array(labels))
    return measure(scores, ("negative", "positive"))


def test_two_classes_are_compared_by_order_and_many_by_hits() -> None:
    ordered = two_classes([0.1, 0.2, 0.3, 0.4], [0, 0, 1, 1])  # all in order, half of them right
    right = two_classes([0.1, 0.7, 0.6, 0.9], [0, 0, 1, 1])  # three right, one pair out of order
    assert (ordered.accuracy, right.accuracy) == (0.5, 0.75)
    assert _score(ordered, 1) == 1.0 > _score(right, 2) == 0.75
    assert _score(with_accuracy(0.4), 1) == 0.4
    assert _score(two_classes([0.9, 0.1], [1, 1]), 1) == 0.5  # one class only: no pairs
    assert _score(None, 7) > _score(None, 6)
