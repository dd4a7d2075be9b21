"""A small dense network: two layers with a ReLU between them; the softmax is in the loss."""

from __future__ import annotations

import math

import torch
from torch import nn

from tenor.models.stage import Stage, StagedModel


class DenseClassifier(StagedModel):
    """A sample is a column of `batch.inputs`: its coordinates. The logits have the shape (batch, classes)."""

    def __init__(self, num_inputs: int, hidden: int, num_classes: int) -> None:
        super().__init__()
        self.first = nn.Linear(num_inputs, hidden)
        self.second = nn.Linear(hidden, num_classes)

    def stages(self) -> list[Stage]:
        """The two layers."""
        first, second = self.first, self.second
        return [
            Stage((first,), lambda points, _: torch.relu(first(points.T)), lambda batch: (len(batch), len(first.bias))),
            Stage((second,), lambda states, _: second(states), lambda batch: (len(batch), len(second.bias))),
        ]


def initialise_dense(model: DenseClassifier, seed: int) -> None:
    """Set the weights from the seed alone (He et al. 2015), and the biases, so that the kinks spread over the plane."""
    generator = torch.Generator().manual_seed(seed)
    with torch.no_grad():
        for layer in (model.first, model.second):
            bound = math.sqrt(6.0 / layer.in_features)
            layer.weight.uniform_(-bound, bound, generator=generator)
            layer.bias.uniform_(-bound, bound, generator=generator)
