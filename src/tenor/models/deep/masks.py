"""Dropout masks that depend only on the sample: each is a hash of (sample key, stream, position).

A sample gets the same masks however a batch is split and in whatever order its samples are computed. No random
generator is involved, so there is no state to save or restore. A mask over features is the same at all time steps
(Gal & Ghahramani 2016, as in AWD-LSTM).
"""

from __future__ import annotations

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

_GOLDEN = np.uint64(0x9E3779B97F4A7C15)


def sample_keys(seed: int, epoch: int, rows: NDArray[np.int64]) -> NDArray[np.uint64]:
    """One key per sample and epoch."""
    with np.errstate(over="ignore"):
        start = _mix(_mix(np.uint64(seed)) + np.uint64(epoch))
        return _mix(rows.astype(np.uint64) * _GOLDEN + start)


def uniform(keys: NDArray[np.uint64], stream: int, width: int) -> NDArray[np.float32]:
    """Numbers in [0, 1) of shape (len(keys), width); each depends on its key, the stream and its column only."""
    with np.errstate(over="ignore"):
        columns = np.arange(width, dtype=np.uint64) * _GOLDEN
        bits = _mix(_mix(keys + np.uint64(stream) * np.uint64(0xD1342543DE82EF95))[:, None] + columns)
    return (bits >> np.uint64(40)).astype(np.float32) * np.float32(2.0**-24)


def dropout_mask(keys: NDArray[np.uint64], stream: int, width: int, share: float, dtype: torch.dtype) -> Tensor:
    """A mask of shape (batch, width) with the values 0 and 1/(1 − share)."""
    kept = uniform(keys, stream, width) >= share
    return torch.from_numpy(kept).to(dtype) / (1.0 - share)


def _mix(values: NDArray[np.uint64] | np.uint64) -> NDArray[np.uint64]:
    """The finaliser of splitmix64: every input bit affects every output bit."""
    with np.errstate(over="ignore"):
        values = np.asarray(values, dtype=np.uint64)
        values = (values ^ (values >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
        values = (values ^ (values >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
        return values ^ (values >> np.uint64(31))
