"""The wide part: a linear classifier of a review's n-grams, with one row of weights per bucket."""

from __future__ import annotations

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from tenor.models.batch import Ngrams
from tenor.models.embedding import RowEmbedding
from tenor.models.spec import WideSpec
from tenor.models.wide.bag import weighted_sums
from tenor.models.wide.characters import NO_CHARACTERS, Characters
from tenor.models.wide.ngrams import NgramIndex


class Wide(nn.Module):
    """One logit per output: the sum of its n-grams' weights, times how much each n-gram counts, plus a bias."""

    importance: Tensor

    def __init__(self, spec: WideSpec, num_outputs: int) -> None:
        super().__init__()
        self.spec = spec
        self.characters: Characters = NO_CHARACTERS  # follow from the vocabulary, which the caller has
        self.ngrams = RowEmbedding(1 << spec.bits, num_outputs)
        self.bias = nn.Parameter(torch.empty(num_outputs))
        self.register_buffer("importance", torch.empty(1 << spec.bits))  # 0: an n-gram to ignore

    def start(self, importance: NDArray[np.float32]) -> None:
        """Begin training: all weights are zero, and n-grams count by this importance."""
        with torch.no_grad():
            self.ngrams.weight.zero_()
            self.bias.zero_()
            self.importance.copy_(torch.from_numpy(importance))

    def reweigh(self, importance: NDArray[np.float32]) -> None:
        """Let n-grams count by another importance, with weights that make each n-gram add what it added before."""
        now = torch.from_numpy(importance).to(self.importance)
        with torch.no_grad():
            factor = torch.where(now > 0, self.importance / now.clamp_min(1e-30), torch.zeros_like(now))
            self.ngrams.weight.mul_(factor[:, None].to(self.ngrams.weight))
            self.importance.copy_(now)

    def make_index(self) -> NgramIndex:
        """What finds the n-grams of this model in rows of token ids."""
        if self.spec.characters and self.characters is NO_CHARACTERS:
            raise ValueError("the character n-grams of the vocabulary are missing")
        return NgramIndex(self.importance.float().cpu().numpy(), self.spec.longest, self.characters)

    def forward(self, ngrams: Ngrams) -> Tensor:
        """(batch, outputs)"""
        leaf = self.ngrams.leaf
        return weighted_sums(self.ngrams.weight if leaf is None else leaf, ngrams) + self.bias
