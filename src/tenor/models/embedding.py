"""An embedding table that trains only the rows a step touches."""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch.nn import functional as F  # noqa: N812


class RowEmbedding(nn.Module):
    """Before a step, `focus(rows)` lifts the rows of the whole global batch into one small dense leaf.

    Tokens are then positions among those rows, the gradient has the size of the rows and not of the vocabulary, and
    since every worker knows the global batch, all have the same rows: the leaf's gradient is summed like any other.
    """

    weight: Tensor

    def __init__(self, num_rows: int, width: int) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.empty(num_rows, width), requires_grad=False)
        self.rows: Tensor | None = None
        self.leaf: Tensor | None = None

    def focus(self, rows: Tensor) -> None:
        self.rows = rows
        self.leaf = self.weight.index_select(0, rows).requires_grad_()

    def release(self) -> None:
        self.rows = self.leaf = None

    def forward(self, tokens: Tensor) -> Tensor:
        return F.embedding(tokens, self.weight if self.leaf is None else self.leaf)
