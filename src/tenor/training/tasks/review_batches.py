"""The batches of the reviews task: token ids for the deep part, n-grams for the wide part, and the rows they touch."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from tenor.models.batch import Ngrams
from tenor.models.deep.masks import sample_keys, uniform
from tenor.models.inference import as_tensors, padded
from tenor.models.rows import shortened
from tenor.models.spec import ModelSpec
from tenor.models.wide.characters import NO_CHARACTERS, Characters
from tenor.models.wide.ngrams import NgramIndex, bucket_weights, count_rows_with
from tenor.preparation.tokeniser.vocabulary import UNKNOWN
from tenor.store.order import Order
from tenor.training.batch import TrainBatch
from tenor.training.settings import TrainSettings
from tenor.training.tasks.losses import Objective
from tenor.training.tasks.negation.contexts import RowSource
from tenor.training.tasks.negation.rows import WithRows

WORDS, NGRAMS = "deep.embedding", "wide.ngrams"  # the tables whose rows a batch touches
WORD_STREAM = 1 << 20  # stream of the word-dropout masks, different from those of the layers
COUNTED_ROWS = 1 << 20  # rows in which n-grams are counted; they are in random order, so more would change little
_BLOCK = 4096  # rows counted at a time


class ReviewBatches:
    """Loads one worker's samples of any batch. Threads may share it."""

    def __init__(
        self,
        rows: RowSource,
        spec: ModelSpec,
        settings: TrainSettings,
        objective: Objective,
        characters: Characters = NO_CHARACTERS,
    ) -> None:
        self.characters = characters
        self.rows, self.spec, self.settings, self.objective = rows, spec, settings, objective
        lengths = np.minimum(rows.lengths, spec.deep.length) if spec.deep else rows.lengths
        self.order = Order(lengths, settings.batch_size, settings.seed)
        self.importance = _weigh(rows, spec, characters)
        self._index = NgramIndex(self.importance, spec.wide.longest, characters) if spec.wide else None

    def raise_importance(self, known: NDArray[np.float32]) -> None:
        """Let each bucket count at least as in the run that this one starts from; `known` is its importance there."""
        if self.spec.wide:  # an n-gram that said nothing there may say a lot in these rows
            self.importance = np.maximum(self.importance, known.astype(np.float32))
            self._index = NgramIndex(self.importance, self.spec.wide.longest, self.characters)

    def load(self, epoch: int, k: int, own: slice) -> TrainBatch:
        """Every rank reads the whole global batch, which is cheap, and so knows all rows that the step touches."""
        rows = self.order.batch(epoch, k)
        tokens, lengths = self.rows.gather(rows)
        keys, labels = sample_keys(self.settings.seed, epoch, rows), self.rows.labels[rows]
        ngrams, touched = self._find_ngrams(tokens, lengths, own)
        if self.spec.deep:
            tokens, lengths = shortened(tokens, lengths, self.spec.deep.length)
            inputs, touched[WORDS] = self._place_words(self._drop(tokens, lengths, keys), lengths, own)
        else:  # the shape alone, which tells how much there is to compute
            inputs = torch.zeros((), dtype=torch.int64).expand(int(lengths[own].max(initial=0)), len(lengths[own]))
        return TrainBatch(
            inputs=inputs,
            lengths=torch.from_numpy(lengths[own].astype(np.int64)),
            keys=keys[own],
            labels=torch.from_numpy(labels[own].astype(np.int64)),
            rows=touched,
            global_weight=self.objective.total_weight(labels),
            num_micro_batches=self.settings.accumulate,
            ngrams=ngrams,
        )

    def _find_ngrams(
        self, tokens: NDArray[Any], lengths: NDArray[Any], own: slice
    ) -> tuple[Ngrams | None, dict[str, Tensor]]:
        if self._index is None:
            return None, {}
        found = self._index(tokens, lengths, own)
        return as_tensors(found, found.ids), {NGRAMS: torch.from_numpy(found.buckets)}

    def _place_words(self, tokens: NDArray[Any], lengths: NDArray[Any], own: slice) -> tuple[Tensor, Tensor]:
        """(padded positions of a worker's words among the touched rows of the whole batch, these rows)."""
        assert self.spec.deep is not None
        touched = np.zeros(self.spec.deep.vocab_size, dtype=bool)
        touched[tokens] = True
        touched[0] = True  # padding
        position = np.cumsum(touched) - 1  # of each id among the touched rows
        ends = np.cumsum(lengths)
        start = ends[own.start - 1] if own.start else 0
        stop = ends[own.stop - 1] if own.stop else 0
        return padded(position[tokens[start:stop]], lengths[own]), torch.from_numpy(np.flatnonzero(touched))

    def _drop(self, tokens: NDArray[Any], lengths: NDArray[Any], keys: NDArray[np.uint64]) -> NDArray[Any]:
        """Replace some words by the unknown word."""
        if not self.settings.word_dropout:
            return tokens
        noise = uniform(keys, WORD_STREAM, int(lengths.max()))  # (batch, time)
        real = np.arange(noise.shape[1]) < lengths[:, None]
        return np.where(noise[real] < self.settings.word_dropout, UNKNOWN, tokens)


def _weigh(rows: RowSource, spec: ModelSpec, characters: Characters) -> NDArray[np.float32]:
    """The importance of each bucket in the training rows; empty without a wide part.

    Added rows decide about n-grams that the rows that were read do not have. They say nothing about how frequent the
    others are, or about how well those tell the classes apart.
    """
    if spec.wide is None:
        return np.empty(0, np.float32)
    num_read, num_rows = rows.num_read if isinstance(rows, WithRows) else len(rows), len(rows)
    count, wide = min(num_read, COUNTED_ROWS), spec.wide
    size = (wide.bits, wide.longest, spec.num_classes, characters)
    counts = count_rows_with(_blocks(rows, 0, count), *size)
    weights = bucket_weights(counts, count, characters)
    if num_rows > num_read:
        counts += count_rows_with(_blocks(rows, num_read, num_rows), *size)
        more = bucket_weights(counts, count + num_rows - num_read, characters)
        weights = np.where(weights == 0.0, more, weights)
    return weights


def _blocks(rows: RowSource, start: int, stop: int) -> Iterator[tuple[NDArray[Any], NDArray[Any], NDArray[Any]]]:
    for first in range(start, stop, _BLOCK):
        numbers = np.arange(first, min(first + _BLOCK, stop))
        yield (*rows.gather(numbers), rows.labels[numbers])
