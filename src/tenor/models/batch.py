"""What a model is given: one worker's part of a global batch."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor


@dataclass(frozen=True)
class Batch:
    """`tokens` are vocabulary ids, or positions among `rows` where those are given (see RowEmbedding)."""

    tokens: Tensor  # (time, batch), padded at the end
    lengths: Tensor  # (batch,)
    labels: Tensor  # (batch,)
    keys: NDArray[np.uint64]  # (batch,) names each sample to its dropout masks
    rows: Tensor | None = None  # the vocabulary rows touched by the whole global batch

    def __len__(self) -> int:
        return len(self.labels)

    def to(self, device: torch.device) -> Batch:
        if device.type == "cpu":
            return self
        moved = {name: getattr(self, name).to(device) for name in ("tokens", "lengths", "labels")}
        return replace(self, rows=None if self.rows is None else self.rows.to(device), **moved)

    @property
    def num_padded(self) -> int:
        """Tokens with the padding, which is what computing costs."""
        return self.tokens.numel()

    @property
    def num_tokens(self) -> int:
        return int(self.lengths.sum())
