"""Texts to the ids of a vocabulary, for prediction and evaluation: the same ids that prepare gives."""

from __future__ import annotations

import copy
import functools
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from tenor.compiled import fits_budget, is_small
from tenor.corpus.batch import strings_of
from tenor.preparation.tokeniser.spans import token_spans
from tenor.preparation.tokeniser.spelling import NOTHING_SPELLED, Speller, spell_rows, spelled_lengths
from tenor.preparation.tokeniser.tokenise import Tokeniser, TokeniserSettings
from tenor.preparation.tokeniser.vocabulary import FIRST_WORD, UNKNOWN, Vocabulary
from tenor.preparation.tokeniser.words import pack

FEW = 1000  # texts that may be encoded without compiled code
MOST_WORDS = 1 << 18  # in a table that grows; a larger table is emptied


class Encoder:
    """Cleans and tokenises texts as prepare did for the training data, with a fixed vocabulary."""

    def __init__(self, vocabulary: Vocabulary, tokeniser: dict[str, Any], max_length: int) -> None:
        self.settings = TokeniserSettings.from_dict(tokeniser)
        self.vocabulary = vocabulary
        self.max_length = max_length

    def fresh(self) -> Encoder:
        """An encoder for another thread. It shares the tables that do not change."""
        other = copy.copy(self)
        if "_ids" in vars(self):
            other._ids = self._ids.fresh()
        return other

    @functools.cached_property
    def _ids(self) -> CharacterIds | WordIds:
        kind = CharacterIds if self.settings.units == "characters" else WordIds
        return kind(self.vocabulary, self.settings)

    def __call__(self, texts: Sequence[str] | pa.Array) -> tuple[npt.NDArray[np.int32], npt.NDArray[np.int32]]:
        """Encode texts.

        Returns:
            (tokens, lengths): the ids of all texts, one text after another, and the number of ids of each text. A text
            without words has length 0.
        """
        if self.suits_python(texts, is_small):
            return self.in_python(texts.to_pylist() if isinstance(texts, pa.Array | pa.ChunkedArray) else texts)
        array = texts if isinstance(texts, pa.Array | pa.ChunkedArray) else strings_of(_encoded(texts))
        if isinstance(array, pa.ChunkedArray):
            array = array.combine_chunks()
        return self._ids(array, self.max_length)

    def suits_python(self, texts: Sequence[str] | pa.Array, is_small: Callable[[int], bool] = fits_budget) -> bool:
        """Whether the texts are so few that they are encoded without compiled code."""
        return len(texts) <= FEW and is_small(_size(texts))

    def in_python(self, texts: Sequence[str]) -> tuple[npt.NDArray[np.int32], npt.NDArray[np.int32]]:
        """The same without compiled code, which is faster for the first few texts of a process."""
        places, known = self.vocabulary.places, UNKNOWN - FIRST_WORD
        rows = [
            [places.get(span.character, known) + FIRST_WORD for span in token_spans(text, self.settings)]
            for text in texts
        ]
        kept = [row[: self.max_length] for row in rows]
        return np.array([token for row in kept for token in row], np.int32), np.array(list(map(len, kept)), np.int32)


class WordIds:
    """Texts to the ids of their words."""

    def __init__(self, vocabulary: Vocabulary, settings: TokeniserSettings) -> None:
        # Stop words come first in the table and are skipped. The vocabulary may contain some of them too, so a word's
        # position in the table is not its position in the vocabulary.
        counting = Tokeniser.counting(settings)
        places = counting.table.add(*pack([word.encode() for word in vocabulary.words]))
        self._tokeniser = Tokeniser(settings, counting.table, frozen=True, stop=counting.stop)
        self._ids = np.full(len(counting.table) + 1, UNKNOWN, np.int32)  # the last entry is for -1, an unknown word
        self._ids[places] = np.arange(len(places)) + FIRST_WORD

    def fresh(self) -> WordIds:
        other = copy.copy(self)
        other._tokeniser = copy.copy(self._tokeniser)
        other._tokeniser.clear()
        return other

    def __call__(self, texts: pa.Array, max_length: int) -> tuple[npt.NDArray[np.int32], npt.NDArray[np.int32]]:
        tokens = self._tokeniser(texts, max_length)
        return self._ids[tokens.ids], tokens.lengths


class CharacterIds:
    """Texts to the ids of the characters of their words. A table of the words seen so far grows with the texts."""

    def __init__(self, vocabulary: Vocabulary, settings: TokeniserSettings) -> None:
        self._settings, self._speller = settings, Speller(vocabulary)
        self._tokeniser, self._spelling = Tokeniser.counting(settings), NOTHING_SPELLED

    def fresh(self) -> CharacterIds:
        other = copy.copy(self)
        other._tokeniser, other._spelling = Tokeniser.counting(self._settings), NOTHING_SPELLED
        return other

    def __call__(self, texts: pa.Array, max_length: int) -> tuple[npt.NDArray[np.int32], npt.NDArray[np.int32]]:
        if len(self._tokeniser.table) > MOST_WORDS:
            self._tokeniser, self._spelling = Tokeniser.counting(self._settings), NOTHING_SPELLED
        words = self._tokeniser(texts, max_length)
        data, starts = self._tokeniser.table.contents()
        self._spelling = self._spelling.extended(self._speller(data, starts[self._spelling.num_words :]))
        sizes = words.lengths.astype(np.int64)
        firsts = np.cumsum(sizes) - sizes
        lengths = spelled_lengths(words.ids, self._spelling, firsts, sizes, max_length)
        ends = np.cumsum(lengths)
        tokens = np.empty(int(lengths.sum()), np.int32)
        spell_rows(words.ids, self._spelling.ids, self._spelling.starts, firsts, ends - lengths, lengths, tokens)
        return tokens, lengths.astype(np.int32)


def _encoded(texts: Sequence[str]) -> list[bytes]:
    """The texts as UTF-8, with ? for lone surrogates, which UTF-8 cannot represent."""
    return [text.encode("utf-8", "replace") for text in texts]


def _size(texts: Sequence[str] | pa.Array) -> int:
    """About the number of characters."""
    return int(texts.nbytes) if isinstance(texts, pa.Array | pa.ChunkedArray) else sum(map(len, texts))
