"""Losses as sums over a worker's samples; the caller divides once by the sum of weights over the global batch."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor
from torch.nn import functional as F  # noqa: N812

from tenor.errors import UsageError


@dataclass(frozen=True)
class Objective:
    """A loss per sample and the weight of each class."""

    per_sample: Callable[[Tensor, Tensor], Tensor]
    class_weights: Tensor  # (classes,)

    def __call__(self, logits: Tensor, labels: Tensor) -> tuple[Tensor, Tensor]:
        """The weighted sum of losses and the sum of weights."""
        weights = self.class_weights.to(logits)[labels]
        return (self.per_sample(logits, labels) * weights).sum(), weights.sum()


def make_objective(name: str, num_classes: int, class_weights: Sequence[float]) -> Objective:
    """`auto` is binary cross-entropy for two classes, cross-entropy for more."""
    if name == "auto":
        name = "bce" if num_classes == 2 else "cross-entropy"
    if name == "bce" and num_classes != 2:
        raise UsageError(
            f"--loss bce is for two classes, the data has {num_classes}", remedy="use --loss cross-entropy"
        )
    table = {"bce": _cross_entropy, "cross-entropy": _cross_entropy, "mse": _squared, "focal": _focal}
    return Objective(table[name], torch.tensor(class_weights, dtype=torch.float64))


def balanced_weights(class_counts: Sequence[int]) -> list[float]:
    """Weights that give every class the same total, with mean 1 over the samples."""
    total, present = sum(class_counts), sum(count > 0 for count in class_counts)
    return [total / (present * count) if count else 0.0 for count in class_counts]


def _cross_entropy(logits: Tensor, labels: Tensor) -> Tensor:
    if logits.dim() == 1:
        return F.binary_cross_entropy_with_logits(logits, labels.to(logits.dtype), reduction="none")
    return F.cross_entropy(logits, labels, reduction="none")


def _squared(logits: Tensor, labels: Tensor) -> Tensor:
    """Squared distance between the predicted probabilities and the truth."""
    if logits.dim() == 1:
        return (logits.sigmoid() - labels.to(logits.dtype)) ** 2
    return ((logits.softmax(1) - F.one_hot(labels, logits.shape[1])) ** 2).sum(1)


def _focal(logits: Tensor, labels: Tensor) -> Tensor:
    """Cross-entropy that fades for samples already well predicted (Lin et al. 2017, gamma 2)."""
    loss = _cross_entropy(logits, labels)
    return loss * (1.0 - torch.exp(-loss)) ** 2
