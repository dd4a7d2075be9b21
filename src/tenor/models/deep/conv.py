"""The convolutional cell: each output reads a window of three inputs (Kim 2014), and no state is carried on.

It has no memory beyond its window, but all steps of a review are computed at once. With max pooling, a feature says
whether a phrase of three words occurs anywhere in the review, and only the window with the largest value has a
gradient. `largest` uses that: it needs one matrix product forward and next to nothing backward.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional as F  # noqa: N812

from tenor.compiled import compiled
from tenor.models.deep.maxpool import max_over_time

WINDOW = 3
COMPILED = (torch.float32, torch.float64)


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

    def largest(self, inputs: Tensor, lengths: Tensor) -> Tensor:
        """(batch, hidden): the largest output of each feature within a row's own length."""
        is_plain = not torch.is_autocast_enabled(inputs.device.type)
        if inputs.device.type == "cpu" and inputs.dtype in COMPILED and is_plain:
            best: Tensor = _Largest.apply(inputs, self.weight, lengths)  # type: ignore[no-untyped-call]
            return (best + self.bias).relu()
        return max_over_time(self(inputs)[0], lengths)


class _Largest(torch.autograd.Function):
    """The largest sum of products over the windows of a row, without bias. Of equal sums, the first has a gradient."""

    @staticmethod
    def forward(ctx: Any, inputs: Tensor, weight: Tensor, lengths: Tensor) -> Tensor:
        time, batch, width = inputs.shape
        inputs, weight = inputs.detach().contiguous(), weight.detach()
        by_place = weight.view(-1, WINDOW, width).transpose(0, 1).reshape(-1, width)  # (window × hidden, width)
        products = torch.mm(inputs.view(-1, width), by_place.T).view(time, batch, WINDOW, -1)
        best = inputs.new_empty(batch, products.shape[3])
        place = torch.empty(best.shape, dtype=torch.int32)
        _find_largest(products.numpy(), lengths.numpy(), best.numpy(), place.numpy())
        ctx.save_for_backward(inputs, weight, place)
        return best

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor, Tensor, None]:
        inputs, weight, place = ctx.saved_tensors
        (above,) = gradients
        to_inputs, to_weight = torch.zeros_like(inputs), torch.zeros_like(weight)
        arrays = (above.contiguous(), place, inputs, weight, to_inputs, to_weight)
        _spread(*(array.numpy() for array in arrays))
        return to_inputs, to_weight, None


@compiled
def _find_largest(products: Any, lengths: Any, best: Any, place: Any) -> None:
    """products[t, row, k] belongs to input t at place k of its window; NaN counts as larger than any number."""
    time, batch, window, hidden = products.shape
    total = np.empty(hidden, products.dtype)
    for row in range(batch):
        best[row, :] = -np.inf
        place[row, :] = 0
        for t in range(min(max(lengths[row], 1), time)):
            total[:] = products[t, row, window - 1]
            for k in range(max(0, window - 1 - t), window - 1):
                total += products[t - (window - 1 - k), row, k]
            for j in range(hidden):
                if total[j] > best[row, j] or total[j] != total[j]:
                    best[row, j] = total[j]
                    place[row, j] = t


@compiled
def _spread(above: Any, place: Any, inputs: Any, weight: Any, to_inputs: Any, to_weight: Any) -> None:
    """Add the gradient of each feature to the inputs of its window and to the weights."""
    width = inputs.shape[2]
    window = weight.shape[1] // width
    for row in range(above.shape[0]):
        for j in range(above.shape[1]):
            gradient, t = above[row, j], place[row, j]
            if gradient == 0.0:
                continue
            for k in range(max(0, window - 1 - t), window):
                step, first = t - (window - 1 - k), k * width
                for i in range(width):
                    to_inputs[step, row, i] += gradient * weight[j, first + i]
                    to_weight[j, first + i] += gradient * inputs[step, row, i]
