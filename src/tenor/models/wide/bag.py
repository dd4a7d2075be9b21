"""The weighted sum of table rows per sample, and its gradient: one compiled pass each on processors."""

from __future__ import annotations

from typing import Any

import torch
from numpy.typing import NDArray
from torch import Tensor
from torch.nn import functional as F  # noqa: N812

from tenor.compiled import compiled
from tenor.models.batch import Ngrams

COMPILED = (torch.float32, torch.float64)


def weighted_sums(table: Tensor, ngrams: Ngrams) -> Tensor:
    """(batch, width): for each sample, the sum of the rows of its n-grams, times their weights.

    Args:
        table: (rows, width)
        ngrams: The n-grams of each sample; their ids are rows of the table.
    """
    weights = ngrams.weights.to(table.dtype)
    if table.device.type == "cpu" and table.dtype in COMPILED:
        sums: Tensor = _WeightedSums.apply(table, ngrams.ids, ngrams.starts, weights)  # type: ignore[no-untyped-call]
        return sums
    return F.embedding_bag(
        ngrams.ids, table, ngrams.starts, mode="sum", per_sample_weights=weights, include_last_offset=True
    )


class _WeightedSums(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, table: Tensor, ids: Tensor, starts: Tensor, weights: Tensor) -> Tensor:
        sums = table.new_zeros((len(starts) - 1, table.shape[1]))
        _add_up(table.detach().numpy(), ids.numpy(), starts.numpy(), weights.numpy(), sums.numpy())
        ctx.save_for_backward(ids, starts, weights)
        ctx.num_rows = len(table)
        return sums

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor, None, None, None]:
        ids, starts, weights = ctx.saved_tensors
        (above,) = gradients
        result = above.new_zeros((ctx.num_rows, above.shape[1]))
        _spread(above.contiguous().numpy(), ids.numpy(), starts.numpy(), weights.numpy(), result.numpy())
        return result, None, None, None


@compiled
def _add_up(
    table: NDArray[Any], ids: NDArray[Any], starts: NDArray[Any], weights: NDArray[Any], sums: NDArray[Any]
) -> None:
    for row in range(len(starts) - 1):
        for at in range(starts[row], starts[row + 1]):
            for j in range(sums.shape[1]):
                sums[row, j] += weights[at] * table[ids[at], j]


@compiled
def _spread(
    above: NDArray[Any], ids: NDArray[Any], starts: NDArray[Any], weights: NDArray[Any], result: NDArray[Any]
) -> None:
    for row in range(len(starts) - 1):
        for at in range(starts[row], starts[row + 1]):
            for j in range(above.shape[1]):
                result[ids[at], j] += weights[at] * above[row, j]
