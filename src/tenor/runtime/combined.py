"""From token ids to the probabilities of the classes: both parts of a model and their combination, without torch."""

from __future__ import annotations

import queue
from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tenor.errors import RunError
from tenor.models.spec import ModelSpec
from tenor.models.wide.characters import NO_CHARACTERS, Characters
from tenor.preparation.tokeniser.vocabulary import UNKNOWN
from tenor.runtime.convolution import find_largest
from tenor.runtime.deep import DeepLogits
from tenor.runtime.few_ngrams import FoundNgrams
from tenor.runtime.wide import WideSums, WideTable, add_up

Ids = NDArray[np.int32]


class CombinedParts:
    """The weights of a trained model. Threads may share it."""

    def __init__(
        self, spec: ModelSpec, weights: Mapping[str, NDArray[Any]], characters: Characters = NO_CHARACTERS
    ) -> None:
        self.spec = spec
        self.scales = weights["combination.scales"].astype(np.float64)  # of the wide part, then of the deep part
        self.shifts = weights["combination.shifts"].astype(np.float64)
        self.wide = WideTable(spec.wide, weights, characters) if spec.wide else None
        self.deep = DeepLogits(spec.deep, weights) if spec.deep else None
        self._idle: queue.SimpleQueue[WideSums] = queue.SimpleQueue()

    @property
    def kernels(self) -> list[Any]:
        """The compiled functions that predict many texts, which takes seconds if they have to be compiled first."""
        own = [add_up] if self.wide is not None else []
        return [*own, find_largest] if self.deep is not None and self.deep.is_convolution else own

    def probabilities(self, tokens: Ids, lengths: Ids) -> NDArray[np.float32]:
        """(rows, classes); a row without ids counts as one unknown word.

        Raises:
            RunError: A probability is not finite.
        """
        with np.errstate(over="ignore", invalid="ignore"):
            result = to_probabilities(self.logits(tokens, lengths))
        if not np.isfinite(result).all():
            raise RunError("the model gives probabilities that are not finite", remedy="train again with a lower --lr")
        return result

    def logits(self, tokens: Ids, lengths: Ids) -> NDArray[np.float64]:
        """(rows, outputs): the combined logits."""
        tokens, lengths = with_unknown(tokens, lengths)
        combined = np.tile(self.shifts, (len(lengths), 1))
        for scale, logits in zip(self.scales, self._parts(tokens, lengths), strict=True):
            combined += scale * logits
        return combined

    def contributions(self, tokens: Ids, lengths: Ids) -> FoundNgrams:
        """What each n-gram of the wide part adds to the combined logits, apart from the bias."""
        if self.wide is None:
            outputs = np.empty((0, self.spec.num_outputs))
            nothing = np.empty(0, np.int64)
            return FoundNgrams(np.zeros(len(lengths) + 1, np.int64), nothing, nothing, outputs)
        tokens, lengths = with_unknown(tokens, lengths)
        sums = self._take(self.wide)
        found = sums.contributions(tokens, np.cumsum(lengths, dtype=np.int64))
        self._idle.put(sums)
        found.values[:] *= self.scales[0]
        return found

    def _parts(self, tokens: Ids, lengths: Ids) -> list[NDArray[np.float64]]:
        parts = []
        if self.wide is not None:
            sums = self._take(self.wide)
            parts.append(sums.logits(tokens, np.cumsum(lengths, dtype=np.int64)))
            self._idle.put(sums)
        if self.deep is not None:
            parts.append(self.deep(tokens, lengths))
        return parts

    def _take(self, table: WideTable) -> WideSums:
        try:
            return self._idle.get_nowait()
        except queue.Empty:
            return WideSums(table)


def with_unknown(tokens: Ids, lengths: Ids) -> tuple[Ids, Ids]:
    """The rows, with one unknown word in each row that has no ids."""
    empty = np.flatnonzero(lengths == 0)
    if not len(empty):
        return tokens, lengths
    places = np.cumsum(lengths, dtype=np.int64)[empty]
    return np.insert(tokens, places, UNKNOWN).astype(np.int32), np.maximum(lengths, 1).astype(np.int32)


def to_probabilities(logits: NDArray[np.float64]) -> NDArray[np.float32]:
    """(rows, classes) from (rows, outputs); one output stands for two classes."""
    if logits.shape[1] == 1:
        positive = 1.0 / (1.0 + np.exp(-np.clip(logits[:, 0], -700.0, 700.0)))
        return np.stack([1.0 - positive, positive], axis=1).astype(np.float32)
    chances = np.exp(logits - logits.max(axis=1, keepdims=True))
    shares: NDArray[np.float32] = (chances / chances.sum(axis=1, keepdims=True)).astype(np.float32)
    return shares
