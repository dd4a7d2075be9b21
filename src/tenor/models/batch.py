"""What a model is given: one worker's part of a global batch."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
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

    @property
    def num_tokens(self) -> int:
        return int(self.lengths.sum())
