"""Texts to vocabulary ids, for prediction: the same ids that prepare gives."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from tenor.preparation.tokeniser import Tokeniser, TokeniserSettings
from tenor.preparation.vocabulary import FIRST_WORD, UNKNOWN, Vocabulary
from tenor.preparation.words import pack


class Encoder:
    """Cleans and tokenises as the training data was, with a vocabulary that does not grow."""

    def __init__(self, vocabulary: Vocabulary, tokeniser: dict[str, Any], max_length: int) -> None:
        settings = TokeniserSettings.from_dict(tokeniser)
        self.vocabulary = vocabulary
        self.max_length = max_length
        # Stop words are skipped because they come first in the table. A vocabulary from elsewhere may hold some too,
        # and they stay where they are, so a word's place in the table is not its place in the vocabulary.
        counting = Tokeniser.counting(settings)
        places = counting.table.add(*pack([word.encode() for word in vocabulary.words]))
        self._tokeniser = Tokeniser(settings, counting.table, frozen=True, stop=counting.stop)
        self._ids = np.full(len(counting.table) + 1, UNKNOWN, np.int32)  # the last is for -1, an unknown word
        self._ids[places] = np.arange(len(places)) + FIRST_WORD

    def __call__(self, texts: Sequence[str] | pa.Array) -> tuple[npt.NDArray[np.int32], npt.NDArray[np.int32]]:
        """(tokens, lengths): rows one after the other; an empty text has length 0."""
        array = texts if isinstance(texts, pa.Array | pa.ChunkedArray) else pa.array(_clean(texts), pa.large_string())
        if isinstance(array, pa.ChunkedArray):
            array = array.combine_chunks()
        tokens = self._tokeniser(array, self.max_length)
        return self._ids[tokens.ids], tokens.lengths


def _clean(texts: Sequence[str]) -> list[str]:
    """A lone surrogate cannot be written as UTF-8; it reads as a character that is no letter."""
    return [text if text.isascii() else text.encode("utf-8", "replace").decode("utf-8") for text in texts]
