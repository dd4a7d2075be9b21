"""Skip-gram with negative sampling: each neighbour of a word predicts the word, and not the noise words."""

from __future__ import annotations

import torch
from torch import Tensor
from torch.nn import functional as F  # noqa: N812

from tenor.models.batch import Batch
from tenor.models.embedding import RowEmbedding
from tenor.models.stage import Stage, StagedModel

NONE = -1  # in place of a neighbour that a window does not have
IGNORED = 40.0  # the size of a logit without a gradient: its loss is below 1e-17


class SkipGram(StagedModel):
    """Two tables: the vectors of neighbours (`inputs`) and the vectors of predicted words (`outputs`).

    A sample is a column of `batch.inputs`: the word, its noise words, and then its neighbours, NONE at the end. The
    logits have the shape (batch, neighbours, 1 + noise words). Those of missing neighbours, and of noise words that
    equal the word, are replaced by numbers that have neither a loss nor a gradient.
    """

    def __init__(self, num_words: int, dim: int, num_noise: int) -> None:
        super().__init__()
        self.inputs, self.outputs = RowEmbedding(num_words, dim), RowEmbedding(num_words, dim)
        self.dim, self.num_far = dim, 1 + num_noise

    def stages(self) -> list[Stage]:
        """The table of each side."""
        return [
            Stage((self.inputs,), self._look_up, self._shape),
            Stage((self.outputs,), self._predict, lambda batch: (len(batch), self._num_near(batch), self.num_far)),
        ]

    def _num_near(self, batch: Batch) -> int:
        return len(batch.inputs) - self.num_far

    def _shape(self, batch: Batch) -> tuple[int, ...]:
        return (len(batch), self._num_near(batch), self.dim)

    def _look_up(self, ids: Tensor, batch: Batch) -> Tensor:
        near: Tensor = self.inputs(ids[self.num_far :].T.clamp(min=0))
        return near  # (batch, neighbours, dim)

    def _predict(self, near: Tensor, batch: Batch) -> Tensor:
        ids = batch.inputs.T  # (batch, 1 + noise words + neighbours)
        far_ids = ids[:, : self.num_far]
        logits = torch.bmm(near, self.outputs(far_ids).transpose(1, 2))
        is_noise = torch.ones_like(far_ids, dtype=torch.bool)
        is_noise[:, 0] = False
        is_real = (ids[:, self.num_far :, None] != NONE) & ~(is_noise & (far_ids == far_ids[:, :1]))[:, None]
        ignored = torch.where(is_noise, -IGNORED, IGNORED).to(logits.dtype)[:, None]
        return torch.where(is_real, logits, ignored)


def window_loss(logits: Tensor, labels: Tensor) -> Tensor:
    """The sum of the losses of all predictions of each window: its word is column 0, its noise words are the others."""
    signs = torch.ones(logits.shape[2], dtype=logits.dtype, device=logits.device)
    signs[0] = -1.0
    return F.softplus(logits * signs).sum(dim=(1, 2))


def initialise_skipgram(model: SkipGram, seed: int) -> None:
    """Small random inputs and zeros as outputs, as in word2vec."""
    generator = torch.Generator().manual_seed(seed)
    with torch.no_grad():
        model.inputs.weight.uniform_(-0.5 / model.dim, 0.5 / model.dim, generator=generator)
        model.outputs.weight.zero_()
