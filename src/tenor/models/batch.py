"""What a model is given: one worker's part of a global batch."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import pairwise

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor


@dataclass(frozen=True)
class Batch:
    """`tokens` are vocabulary ids, or positions among `rows` where those are given (see RowEmbedding)."""

    tokens: Tensor  # (time, batch), padded at the end; of points the coordinates (2, batch)
    lengths: Tensor  # (batch,)
    labels: Tensor  # (batch,)
    keys: NDArray[np.uint64]  # (batch,) names each sample to its dropout masks
    rows: Tensor | None = None  # the vocabulary rows touched by the whole global batch
    num_global: int = 0  # samples of the whole global batch; 0: not known
    num_pieces: int = 0  # micro-batches it is computed in; 0: as few as the strategy likes
    decision: int = 0  # the number of the balancing decision it was cut by

    def __len__(self) -> int:
        return len(self.labels)

    def to(self, device: torch.device) -> Batch:
        if device.type == "cpu":
            return self
        moved = {name: getattr(self, name).to(device) for name in ("tokens", "lengths", "labels")}
        return replace(self, rows=None if self.rows is None else self.rows.to(device), **moved)

    def pieces(self) -> Iterator[Batch]:
        """Its micro-batches, about equal in rows, each only as long as its own longest row; none is empty."""
        bounds = np.linspace(0, len(self), min(self.num_pieces, len(self)) + 1).astype(int).tolist()
        for start, stop in pairwise(bounds):
            lengths = self.lengths[start:stop]
            tokens = self.tokens[: int(lengths.max()), start:stop]
            yield Batch(tokens, lengths, self.labels[start:stop], self.keys[start:stop], self.rows)

    @property
    def num_tokens(self) -> int:
        return int(self.lengths.sum())

    @property
    def num_padded(self) -> int:
        """Tokens with the padding, which is what computing costs."""
        return self.tokens.numel()
