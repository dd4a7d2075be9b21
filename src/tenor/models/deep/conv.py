"""The convolutional cell: each output reads a window of three inputs (Kim 2014), and no state is carried on.

It has no memory beyond its window, but all steps of a review are computed at once. Two layers read five words, which is
enough for most phrases; the pooling over time finds them wherever they are.
"""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch.nn import functional as F  # noqa: N812

WINDOW = 3


class Conv(nn.Module):
    """From (time, batch, width) to (time, batch, hidden), after a ReLU; called like nn.LSTM."""

    def __init__(self, width: int, hidden: int) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.empty(hidden, WINDOW * width))  # of the input two steps before, one, and now
        self.bias = nn.Parameter(torch.empty(hidden))
        for weight in self.parameters():
            nn.init.uniform_(weight, -(width**-0.5), width**-0.5)

    def forward(self, inputs: Tensor) -> tuple[Tensor]:
        time, _, width = inputs.shape
        filters = self.weight.view(-1, WINDOW, width).transpose(1, 2)
        # Padding is symmetric; without the last outputs, each one depends only on inputs up to its own step.
        outputs = F.conv1d(inputs.permute(1, 2, 0), filters, self.bias, padding=WINDOW - 1)[:, :, :time]
        return (outputs.relu().permute(2, 0, 1),)
