"""Models as a sequence of stages that can be computed separately. A model does not know who computes which stage."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor, nn

from tenor.models.batch import Batch


@dataclass(frozen=True)
class Stage:
    """A function from the output of the previous stage, or from the batch's inputs, to the input of the next one."""

    modules: tuple[nn.Module, ...]  # the modules whose weights this stage uses, and no other stage does
    compute: Callable[[Tensor, Batch], Tensor]
    shape: Callable[[Batch], tuple[int, ...]]  # the shape of the output


class StagedModel(nn.Module):
    """A model whose forward pass is its stages, one after another."""

    product_dtype: torch.dtype | None = None  # a 16-bit type for matrix products; None: the type of the weights

    def stages(self) -> list[Stage]:
        raise NotImplementedError

    def forward(self, batch: Batch) -> Tensor:
        """Logits: (batch,) or (batch, classes)."""
        if self.product_dtype is None:
            return run_stages(self.stages(), batch.inputs, batch)
        with torch.autocast(batch.inputs.device.type, self.product_dtype):
            logits = run_stages(self.stages(), batch.inputs, batch)
        return logits.float()  # for the loss


def run_stages(stages: Sequence[Stage], states: Tensor, batch: Batch) -> Tensor:
    """Compute the stages one after another."""
    for stage in stages:
        states = stage.compute(states, batch)
    return states
