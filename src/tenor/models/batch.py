"""The input of a model: samples of one shape."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any, Self

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor


@dataclass(frozen=True)
class Ngrams:
    """The n-grams of each sample, one sample after another."""

    ids: Tensor  # rows of the table of n-grams
    starts: Tensor  # (batch + 1,) where each sample starts in `ids`
    weights: Tensor  # of each n-gram in its sample

    def samples(self, start: int, stop: int) -> Ngrams:
        """Those of the samples from `start` to before `stop`."""
        first, last = int(self.starts[start]), int(self.starts[stop])
        return Ngrams(self.ids[first:last], self.starts[start : stop + 1] - first, self.weights[first:last])

    def to(self, device: torch.device) -> Ngrams:
        return Ngrams(self.ids.to(device), self.starts.to(device), self.weights.to(device))


@dataclass(frozen=True)
class Batch:
    """Samples, padded to one shape."""

    inputs: Tensor  # (time, batch) word ids, padded with 0 at the end; or (coordinates, batch) of points
    lengths: Tensor  # (batch,) the number of words, or of coordinates
    keys: NDArray[np.uint64]  # (batch,) a key per sample, which determines its dropout masks
    ngrams: Ngrams | None = field(default=None, kw_only=True)  # for models with a wide part

    def __len__(self) -> int:
        return len(self.lengths)

    def to(self, device: torch.device) -> Self:
        """The batch with its tensors on another device."""
        if device.type == "cpu":
            return self
        tensors = {name: value for name, value in vars(self).items() if isinstance(value, Tensor | Ngrams)}
        moved: dict[str, Any] = {name: tensor.to(device) for name, tensor in tensors.items()}
        return replace(self, **moved)

    @property
    def num_tokens(self) -> int:
        """The number of words, or of coordinates, without padding."""
        return int(self.lengths.sum())

    @property
    def num_padded(self) -> int:
        """The number of words with padding, which determines the cost of computing."""
        return self.inputs.numel()
