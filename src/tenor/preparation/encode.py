"""Texts to vocabulary ids, for prediction: the same ids that prepare gives."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from tenor.preparation.tokeniser import Tokeniser, TokeniserSettings
from tenor.preparation.vocabulary import Vocabulary, as_ids
from tenor.preparation.words import pack


class Encoder:
    """Cleans and tokenises as the training data was, with a vocabulary that does not grow."""

    def __init__(self, vocabulary: Vocabulary, tokeniser: dict[str, Any], max_length: int) -> None:
        settings = TokeniserSettings.from_dict(tokeniser)
        self.vocabulary = vocabulary
        self.max_length = max_length
        # Stop words are skipped because they are in the table with ids below the vocabulary's.
        counting = Tokeniser.counting(settings)
        self._stop = counting.stop
        counting.table.add(*pack([word.encode() for word in vocabulary.words]))
        self._tokeniser = Tokeniser(settings, counting.table, frozen=True, stop=self._stop)

    def __call__(self, texts: Sequence[str] | pa.Array) -> tuple[npt.NDArray[np.int32], npt.NDArray[np.int32]]:
        """(tokens, lengths): rows one after the other; an empty text has length 0."""
        array = texts if isinstance(texts, pa.Array | pa.ChunkedArray) else pa.array(_clean(texts), pa.large_string())
        if isinstance(array, pa.ChunkedArray):
            array = array.combine_chunks()
        tokens = self._tokeniser(array, self.max_length)
        found = np.where(tokens.ids < 0, tokens.ids, tokens.ids - self._stop)
        return as_ids(found), tokens.lengths


def _clean(texts: Sequence[str]) -> list[str]:
    """A lone surrogate cannot be written as UTF-8; it reads as a character that is no letter."""
    return [text if text.isascii() else text.encode("utf-8", "replace").decode("utf-8") for text in texts]
