"""One worker's samples of a global batch, and how a global batch is divided among the workers."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from itertools import pairwise
from typing import Self

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from tenor.models.batch import Batch
from tenor.store.order import Order, split


@dataclass(frozen=True)
class TrainBatch(Batch):
    """If `rows` names a table, `inputs` holds positions among these rows instead of its ids (see `RowEmbedding`)."""

    labels: Tensor  # (batch,)
    rows: Mapping[str, Tensor] = field(default_factory=dict)  # by table: the rows that the whole global batch touches
    global_weight: float = 0.0  # the sum of the class weights over the whole global batch; 0: unknown
    num_micro_batches: int = 0  # the number of micro-batches to compute it in; 0: the strategy chooses
    decision: int = 0  # the number of the balancing decision by which the global batch was divided
    load_seconds: float = 0.0  # of processor time that loading took

    def rows_of(self, weight: str) -> Tensor:
        """The touched rows of the table whose weight has this name; "words.weight" belongs to the table "words"."""
        return self.rows[weight.removesuffix(".weight")]

    def to(self, device: torch.device) -> Self:
        """The batch with its tensors, also those of `rows`, on another device."""
        moved = super().to(device)
        return moved if moved is self else replace(moved, rows={n: r.to(device) for n, r in self.rows.items()})

    def micro_batches(self, count: int) -> list[TrainBatch]:
        """At most `count` micro-batches of about equal numbers of rows, each padded to its own longest row.

        None of them is empty; an empty batch has none.
        """
        bounds = np.linspace(0, len(self), min(count, len(self)) + 1).astype(int).tolist()
        return [self._rows(start, stop) for start, stop in pairwise(bounds)]

    def _rows(self, start: int, stop: int) -> TrainBatch:
        lengths = self.lengths[start:stop]
        inputs = self.inputs[: int(lengths.max()), start:stop]
        ngrams = self.ngrams and self.ngrams.samples(start, stop)
        return TrainBatch(inputs, lengths, self.keys[start:stop], self.labels[start:stop], self.rows, ngrams=ngrams)


def divide(order: Order, epoch: int, k: int, shares: NDArray[np.float64]) -> list[slice]:
    """Divide global batch k into one slice per worker, by the workers' shares of the padded tokens."""
    return split(order.lengths[order.batch(epoch, k)], shares)
