"""The maximum over time on a CPU: one compiled forward pass and one compiled backward pass.

The backward pass of torch's own amax takes a tenth of a training step.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from tenor.compiled import compiled


@compiled
def _largest(states: NDArray[Any], lengths: NDArray[Any], best: NDArray[Any], place: NDArray[Any]) -> None:
    """The largest of each row's first `lengths` states, and its time step; NaN counts as larger than any number."""
    best[:] = states[0]
    place[:] = 0
    for t in range(1, len(states)):
        for row in range(len(lengths)):
            if t < lengths[row]:
                for j in range(states.shape[2]):
                    value = states[t, row, j]
                    if value > best[row, j] or np.isnan(value):
                        best[row, j] = value
                        place[row, j] = t


@compiled
def _put_back(gradient: NDArray[Any], place: NDArray[Any], result: NDArray[Any]) -> None:
    for row in range(gradient.shape[0]):
        for j in range(gradient.shape[1]):
            result[place[row, j], row, j] = gradient[row, j]


class MaxOverTime(torch.autograd.Function):
    """From (time, batch, width) and lengths to (batch, width). Of equal states, the first gets the gradient."""

    @staticmethod
    def forward(ctx: Any, states: Tensor, lengths: Tensor) -> Tensor:
        best = states.new_empty(states.shape[1:])
        place = torch.empty(states.shape[1:], dtype=torch.int32)
        _largest(states.detach().contiguous().numpy(), lengths.numpy(), best.numpy(), place.numpy())
        ctx.place, ctx.time = place.numpy(), len(states)
        return best

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor, None]:
        (gradient,) = gradients
        result = gradient.new_zeros((ctx.time, *gradient.shape))
        _put_back(gradient.contiguous().numpy(), ctx.place, result.numpy())
        return result, None


def max_over_time(states: Tensor, lengths: Tensor) -> Tensor:
    """The same as `states.masked_fill(padding, -inf).amax(0)`, which is used where no gradient is needed."""
    if states.requires_grad and states.device.type == "cpu" and states.dtype in (torch.float32, torch.float64):
        pooled: Tensor = MaxOverTime.apply(states, lengths)  # type: ignore[no-untyped-call]
        return pooled
    steps = torch.arange(len(states), device=states.device)[:, None]
    return states.masked_fill((steps >= lengths)[:, :, None], -torch.inf).amax(0)
