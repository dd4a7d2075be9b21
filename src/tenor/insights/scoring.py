"""The only place where insights and drift use a run's model: its probabilities, and what each n-gram contributes.

Everything else works on token ids, probabilities and contributions, whatever model gives them.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from tenor.compiled import compiled
from tenor.environment import num_threads
from tenor.models.wide.characters import NO_CHARACTERS, Characters
from tenor.models.wide.hashing import extended_hash
from tenor.prediction.worker_model import ModelRef, model_of
from tenor.runtime.model import SentimentModel


@dataclass(frozen=True)
class Sides:
    """Which classes count as negative and which as positive: the lower and the upper half of the classes."""

    negative: tuple[int, ...]
    positive: tuple[int, ...]

    @classmethod
    def of(cls, num_classes: int) -> Sides:
        half = num_classes // 2
        return cls(tuple(range(half)), tuple(range(num_classes - half, num_classes)))


class RunScorer:
    """Scores texts with the model of a run. Workers make their own from the same reference."""

    def __init__(self, ref: ModelRef, threads: int = 0, workers: int = 1) -> None:
        self.model: SentimentModel = model_of(ref)
        self.model.threads = num_threads(threads, workers)
        self.config: dict[str, Any] = self.model.config
        self.classes: tuple[str, ...] = self.model.classes
        self.encoder = self.model.encoder
        self.sides = Sides.of(len(self.classes))

    def encode(self, texts: pa.Array) -> tuple[NDArray[np.int32], NDArray[np.int32]]:
        """(tokens, lengths) of texts, as ids of the run's vocabulary."""
        return self.encoder(texts)

    def probabilities(self, tokens: NDArray[np.int32], lengths: NDArray[np.int32]) -> NDArray[np.float32]:
        """(rows, classes)"""
        return self.model.score_tokens(tokens, lengths)

    def words(self) -> tuple[str, ...]:
        """The words of the vocabulary; the first one has the id FIRST_WORD."""
        return self.encoder.vocabulary.words

    def contributions(self) -> Contributions | None:
        """What the n-grams of the wide part contribute; None if the model has no wide part."""
        wide = self.model.parts.wide
        if wide is None:
            return None
        weights = wide.table[:, 1:]  # (buckets, outputs)
        scale = float(self.model.parts.scales[0])  # the wide part is the first one
        if weights.shape[1] == 1:
            towards_positive = weights[:, 0] * scale
        else:
            up, down = weights[:, list(self.sides.positive)], weights[:, list(self.sides.negative)]
            towards_positive = (up.mean(axis=1) - down.mean(axis=1)) * scale
        importance = np.ascontiguousarray(wide.table[:, 0])
        towards = np.ascontiguousarray(towards_positive, np.float32)
        return Contributions(importance, towards, wide.longest, wide.characters)


class Contributions:
    """What each n-gram of a row adds to the logit of positive against negative."""

    def __init__(
        self,
        importance: NDArray[np.float32],
        weights: NDArray[np.float32],
        longest: int,
        characters: Characters = NO_CHARACTERS,
    ) -> None:
        self.longest, self._characters = longest, characters
        self._importance, self._weights = importance, weights
        self._shift = np.uint64(64 - (len(importance).bit_length() - 1))
        self._seen = np.zeros(len(importance), np.int32)
        self._row = 0

    def __call__(self, tokens: NDArray[np.int32], lengths: NDArray[np.int32]) -> NDArray[np.float32]:
        """(tokens, longest): at [i, n - 1] the contribution of the n-gram that starts at token i and has n tokens.

        An n-gram counts once per row. If it occurs again in its row, each occurrence shows the same contribution. That
        of a single word includes its character n-grams; those that several words of a row share count for each of them.
        """
        result = np.zeros((len(tokens), self.longest), np.float32)
        if self._row + len(lengths) >= np.iinfo(np.int32).max:
            self._seen[:], self._row = 0, 0
        ends = np.cumsum(lengths, dtype=np.int64)
        _contribute(
            np.ascontiguousarray(tokens, np.int32), ends, self._shift, self._characters.starts,
            self._characters.hashes, self._importance, self._weights, self._seen, self._row, result,
        )  # fmt: skip
        self._row += len(lengths)
        return result


@compiled
def _contribute(
    tokens: Any,
    ends: Any,
    shift: Any,
    char_starts: Any,
    char_hashes: Any,
    importance: Any,
    weights: Any,
    seen: Any,
    before: int,
    result: Any,
) -> None:
    longest, start = result.shape[1], 0
    for row in range(len(ends)):
        end = min(ends[row], len(tokens))
        square = 0.0
        for first in range(start, end):
            state = np.uint64(0)
            for at in range(first, min(first + longest, end)):
                state = extended_hash(state, tokens[at])
                bucket = state >> shift
                weight = importance[bucket]
                result[first, at - first] = weight * weights[bucket]
                if weight != 0.0 and seen[bucket] != before + row + 1:
                    seen[bucket] = before + row + 1
                    square += weight * weight
            token = tokens[first]
            if 0 <= token < len(char_starts) - 1:
                for at in range(char_starts[token], char_starts[token + 1]):
                    bucket = char_hashes[at] >> shift
                    weight = importance[bucket]
                    result[first, 0] += weight * weights[bucket]
                    if weight != 0.0 and seen[bucket] != before + row + 1:
                        seen[bucket] = before + row + 1
                        square += weight * weight
        scale = 1.0 / np.sqrt(square) if square > 0.0 else 0.0
        for first in range(start, end):
            for n in range(longest):
                result[first, n] *= scale
        start = end
