"""From token ids to logits and probabilities, without gradients."""

from __future__ import annotations

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from tenor.models.batch import Batch, Ngrams
from tenor.models.classifier import ReviewNetwork
from tenor.models.rows import shortened
from tenor.models.wide.ngrams import NgramIndex, RowNgrams


def padded(tokens: NDArray[np.int64] | NDArray[np.int32], lengths: NDArray[np.int32]) -> Tensor:
    """Rows of different lengths, stored one after another, as (time, batch) with zeros at the end."""
    real = np.arange(int(lengths.max(initial=0))) < lengths[:, None]  # (batch, time)
    matrix = np.zeros(real.shape, dtype=np.int64)
    matrix[real] = tokens
    return torch.from_numpy(np.ascontiguousarray(matrix.T))


def as_tensors(found: RowNgrams, ids: NDArray[np.int64]) -> Ngrams:
    """N-grams for a model, with these ids."""
    return Ngrams(torch.from_numpy(ids), torch.from_numpy(found.starts), torch.from_numpy(found.weights))


class Inference:
    """Computes the logits of a model for rows of token ids."""

    def __init__(self, model: ReviewNetwork) -> None:
        self.model = model
        self._index: NgramIndex | None = model.wide.make_index() if model.wide else None

    @torch.inference_mode()
    def logits(self, tokens: NDArray[np.int32], lengths: NDArray[np.int32]) -> NDArray[np.float32]:
        """(parts, batch, outputs)"""
        model = self.model.eval()
        device = next(model.parameters()).device
        result: NDArray[np.float32] = model(self._batch(tokens, lengths).to(device)).float().cpu().numpy()
        return result

    def probabilities(self, tokens: NDArray[np.int32], lengths: NDArray[np.int32]) -> NDArray[np.float32]:
        """(batch,) probabilities of the positive class for two classes, (batch, classes) otherwise."""
        return to_probabilities(self.model, self.logits(tokens, lengths))

    def _batch(self, tokens: NDArray[np.int32], lengths: NDArray[np.int32]) -> Batch:
        ngrams = None
        if self._index is not None:
            found = self._index(tokens, lengths)
            ngrams = as_tensors(found, found.buckets[found.ids])
        deep = self.model.spec.deep
        if deep is None:
            inputs = torch.empty(0, len(lengths), dtype=torch.int64)
        else:
            tokens, lengths = shortened(tokens, lengths, deep.length)
            inputs = padded(tokens, lengths)
        keys = np.zeros(len(lengths), dtype=np.uint64)
        return Batch(inputs, torch.from_numpy(lengths.astype(np.int64)), keys, ngrams=ngrams)


@torch.inference_mode()
def to_probabilities(model: ReviewNetwork, logits: NDArray[np.float32]) -> NDArray[np.float32]:
    """(batch,) for two classes, (batch, classes) otherwise, from the logits of each part (parts, batch, outputs)."""
    combined = model.combination(torch.from_numpy(logits))
    chances = combined.squeeze(1).sigmoid() if combined.shape[1] == 1 else combined.softmax(1)
    scores: NDArray[np.float32] = chances.float().cpu().numpy()
    return scores
