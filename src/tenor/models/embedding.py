"""An embedding table that trains only the rows that a step touches."""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch.nn import functional as F  # noqa: N812


class RowEmbedding(nn.Module):
    """An embedding whose gradient has the size of the touched rows, not of the vocabulary.

    Before a step, `focus(rows)` copies the rows that the step touches into one small dense leaf. Word ids are then
    positions among those rows. If the samples of a step are computed in several parts, all parts focus on the same
    rows, so that the gradients of the leaf add up like any others.
    """

    weight: Tensor

    def __init__(self, num_rows: int, width: int) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.empty(num_rows, width), requires_grad=False)
        self.rows: Tensor | None = None
        self.leaf: Tensor | None = None

    def focus(self, rows: Tensor) -> None:
        """Look up positions among these rows from now on, and collect their gradients."""
        self.rows = rows
        self.leaf = self.weight.index_select(0, rows).requires_grad_()

    def release(self) -> None:
        """Look up ids of the whole table again."""
        self.rows = self.leaf = None

    def forward(self, ids: Tensor) -> Tensor:
        return F.embedding(ids, self.weight if self.leaf is None else self.leaf)
