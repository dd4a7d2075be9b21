"""Losses as sums over a worker's samples. The caller divides once by the sum of weights over the global batch."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from torch.nn import functional as F  # noqa: N812

from tenor.errors import UsageError


@dataclass(frozen=True)
class Objective:
    """A loss per sample and the weight of each class."""

    per_sample: Callable[[Tensor, Tensor], Tensor]
    class_weights: Tensor  # (classes,)
    smoothing: tuple[float, ...] | None = None  # the label smoothing of each part of a model whose parts have logits
    # of their own, and whose loss is the mean of theirs; None for other models

    def __call__(self, logits: Tensor, labels: Tensor) -> tuple[Tensor, Tensor]:
        """The weighted sum of losses and the sum of weights.

        Args:
            logits: As the loss takes them; of a model with parts (parts, batch, outputs), where two classes have one
                output.
            labels: (batch,)
        """
        weights = self.class_weights.to(logits)[labels]
        if self.smoothing is None:
            return (self.per_sample(logits, labels) * weights).sum(), weights.sum()
        parts = zip(logits, self.smoothing, strict=True)
        losses = [(self._smoothed(part.squeeze(1), labels, share) * weights).sum() for part, share in parts]
        return sum(losses[1:], losses[0]) / len(losses), weights.sum()

    def _smoothed(self, logits: Tensor, labels: Tensor, share: float) -> Tensor:
        """The loss per sample where a share of each label is spread evenly over all classes (Szegedy et al. 2016)."""
        loss = self.per_sample(logits, labels)
        if share == 0.0:
            return loss
        num_classes = len(self.class_weights)
        spread = [self.per_sample(logits, torch.full_like(labels, one)) for one in range(num_classes)]
        return (1.0 - share) * loss + share * torch.stack(spread).mean(0)

    def total_weight(self, labels: NDArray[np.integer[Any]]) -> float:
        """The sum of weights of samples with these labels."""
        return float(self.class_weights.numpy()[labels].sum())


def make_objective(name: str, num_classes: int, class_weights: Sequence[float]) -> Objective:
    """`auto` is binary cross-entropy for two classes, cross-entropy for more."""
    if name == "auto":
        name = "bce" if num_classes == 2 else "cross-entropy"
    if name == "bce" and num_classes != 2:
        raise UsageError(
            f"--loss bce is for two classes, but the data has {num_classes}", remedy="use --loss cross-entropy"
        )
    table = {"bce": _cross_entropy, "cross-entropy": _cross_entropy, "mse": _squared, "focal": _focal}
    return Objective(table[name], torch.tensor(class_weights, dtype=torch.float64))


def balanced_weights(class_counts: Sequence[int]) -> list[float]:
    """Weights that give every class the same total, with mean 1 over the samples."""
    total, present = sum(class_counts), sum(count > 0 for count in class_counts)
    return [total / (present * count) if count else 0.0 for count in class_counts]


def parse_weights(text: str, class_counts: tuple[int, ...]) -> list[float]:
    """Class weights from `none`, `auto` (balanced), or one number per class, as in `1.5,1`."""
    if text == "none":
        return [1.0] * len(class_counts)
    if text == "auto":
        return balanced_weights(class_counts)
    try:
        weights = [float(part) for part in text.split(",")]
    except ValueError:
        weights = []
    if len(weights) != len(class_counts) or not all(0 <= w < float("inf") for w in weights) or sum(weights) == 0:
        raise UsageError(
            f"--class-weights cannot be {text!r}",
            remedy=f"give auto, none, or {len(class_counts)} numbers separated by commas",
        )
    return weights


def _cross_entropy(logits: Tensor, labels: Tensor) -> Tensor:
    if logits.dim() == 1:
        return F.binary_cross_entropy_with_logits(logits, labels.to(logits.dtype), reduction="none")
    return F.cross_entropy(logits, labels, reduction="none")


def _squared(logits: Tensor, labels: Tensor) -> Tensor:
    """The squared distance between the predicted probabilities and the label."""
    if logits.dim() == 1:
        return (logits.sigmoid() - labels.to(logits.dtype)) ** 2
    return ((logits.softmax(1) - F.one_hot(labels, logits.shape[1])) ** 2).sum(1)


def _focal(logits: Tensor, labels: Tensor) -> Tensor:
    """Cross-entropy with less weight on samples that are already predicted well (Lin et al. 2017, gamma 2)."""
    loss = _cross_entropy(logits, labels)
    return loss * (1.0 - torch.exp(-loss)) ** 2
