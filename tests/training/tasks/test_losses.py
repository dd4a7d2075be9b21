"""Losses against their textbook forms, computed with numpy."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import torch

from tenor.errors import UsageError
from tenor.training.tasks.losses import balanced_weights, make_objective
from tenor.training.tasks.reviews import parse_weights

LABELS = torch.tensor([0, 1, 1, 0, 1])


def probabilities(classes: int) -> tuple[torch.Tensor, np.ndarray]:
    logits = torch.from_numpy(np.random.default_rng(0).normal(size=(5, classes)))
    if classes == 2:
        positive = 1 / (1 + np.exp(-logits[:, 0].numpy()))
        return logits[:, 0], np.stack([1 - positive, positive], 1)
    powers = np.exp(logits.numpy())
    return logits, powers / powers.sum(1, keepdims=True)


@pytest.mark.parametrize("classes", [2, 4])
@pytest.mark.parametrize("name", ["auto", "cross-entropy", "mse", "focal"])
def test_weighted_sums(name: str, classes: int) -> None:
    logits, chances = probabilities(classes)
    weights = [0.5, 2.0, 1.0, 1.0][:classes]
    truth = chances[np.arange(5), LABELS.numpy()]
    hot = np.eye(classes)[LABELS.numpy()]
    squared = (chances[:, 1] - hot[:, 1]) ** 2 if classes == 2 else ((chances - hot) ** 2).sum(1)
    each = {"mse": squared, "focal": -((1 - truth) ** 2) * np.log(truth)}.get(name, -np.log(truth))
    per_sample = np.array(weights)[LABELS.numpy()]
    loss, weight = make_objective(name, classes, weights)(logits, LABELS)
    assert float(loss) == pytest.approx((each * per_sample).sum(), rel=1e-12)
    assert float(weight) == pytest.approx(per_sample.sum())


def test_balanced_weights_give_each_class_the_same_total() -> None:
    counts = [30, 70]
    weights = balanced_weights(counts)
    assert weights[0] * 30 == pytest.approx(weights[1] * 70) == pytest.approx(50)
    assert balanced_weights([10, 0]) == [1.0, 0.0]


@pytest.mark.parametrize("text", ["1", "1,2,3", "a,b", "-1,1", "nan,1", "0,0", "inf,1"])
def test_invalid_class_weights_are_refused(text: str) -> None:
    with pytest.raises(UsageError, match="class_weights"):
        parse_weights(text, (30, 70))


@pytest.mark.parametrize("num_classes", [2, 5])
def test_label_smoothing_equals_torch_and_applies_to_its_part_alone(num_classes: int) -> None:
    torch.manual_seed(0)
    labels = torch.arange(12) % num_classes
    parts = torch.randn(2, 12, 1 if num_classes == 2 else num_classes, dtype=torch.float64)
    objective = replace(make_objective("auto", num_classes, [1.0] * num_classes), smoothing=(0.0, 0.2))
    found, _ = objective(parts, labels)
    as_classes = parts if num_classes > 2 else torch.cat([torch.zeros_like(parts), parts], dim=2)
    expected = [
        torch.nn.functional.cross_entropy(part, labels, label_smoothing=share, reduction="sum")
        for part, share in zip(as_classes, (0.0, 0.2), strict=True)
    ]
    torch.testing.assert_close(found, sum(expected) / 2)


def test_the_weights_of_a_model_with_parts_count_once() -> None:
    logits, chances = probabilities(2)
    objective = replace(make_objective("auto", 2, [0.5, 2.0]), smoothing=(0.0, 0.0))
    loss, weight = objective(torch.stack([logits, logits]).unsqueeze(2), LABELS)
    per_sample = np.array([0.5, 2.0, 2.0, 0.5, 2.0])
    assert float(loss) == pytest.approx((-np.log(chances[np.arange(5), LABELS.numpy()]) * per_sample).sum())
    assert float(weight) == pytest.approx(7.0)
