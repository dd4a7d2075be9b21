"""From ragged tokens to probabilities, without gradients."""

from __future__ import annotations

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from tenor.models.batch import Batch


def padded(tokens: NDArray[np.int64] | NDArray[np.int32], lengths: NDArray[np.int32]) -> Tensor:
    """Ragged rows, one after another, as (time, batch), zeros at the end."""
    real = np.arange(int(lengths.max(initial=0))) < lengths[:, None]  # (batch, time)
    matrix = np.zeros(real.shape, dtype=np.int64)
    matrix[real] = tokens
    return torch.from_numpy(np.ascontiguousarray(matrix.T))


@torch.inference_mode()
def probabilities(model: nn.Module, tokens: NDArray[np.int32], lengths: NDArray[np.int32]) -> NDArray[np.float32]:
    """(batch,) of the positive class for two classes, (batch, classes) otherwise."""
    model.eval()
    batch = Batch(
        tokens=padded(tokens, lengths),
        lengths=torch.from_numpy(lengths.astype(np.int64)),
        labels=torch.zeros(len(lengths), dtype=torch.int64),
        keys=np.zeros(len(lengths), dtype=np.uint64),
    )
    device = next(model.parameters()).device
    logits = model(batch.to(device))
    result = logits.sigmoid() if logits.dim() == 1 else logits.softmax(1)
    scores: NDArray[np.float32] = result.float().cpu().numpy()
    return scores
