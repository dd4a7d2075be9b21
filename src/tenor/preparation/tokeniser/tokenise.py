"""Texts to word ids: runs the compiled tokeniser on Arrow's buffers, and cleans in Python the rows that need it."""

from __future__ import annotations

from dataclasses import asdict, dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from tenor.preparation.tokeniser.characters import CharacterTables, characters
from tenor.preparation.tokeniser.clean import plain
from tenor.preparation.tokeniser.kernel import SLOW, tokenise
from tenor.preparation.tokeniser.negation import NegatedIds
from tenor.preparation.tokeniser.words import WordTable, are_words, pack

UNLIMITED = 1 << 40


@dataclass(frozen=True)
class TokeniserSettings:
    """How texts are cut into words. A run stores these settings, so that it reads texts like its training data."""

    clean: str = "words"
    marks: bool = True
    stopwords: tuple[str, ...] = ()
    units: str = "words"  # what the tokens are: words, or their characters
    negation: bool = False  # words after a negator are words of their own

    def as_dict(self) -> dict[str, Any]:
        values = {**asdict(self), "stopwords": list(self.stopwords)}
        if self.units == "words":  # so that data with the defaults of older versions is the same as theirs
            del values["units"]
        if not self.negation:
            del values["negation"]
        return values

    def with_units(self, units: str) -> TokeniserSettings:
        """The same with these units. Characters are never negated."""
        return replace(self, units=units, negation=self.negation and units == "words")

    @classmethod
    def from_dict(cls, values: dict[str, Any]) -> TokeniserSettings:
        """Read the settings of a manifest or a run.

        Raises:
            ValueError: No version of Tenor has written these values.
        """
        words = values.get("stopwords")
        if values.get("clean") not in ("words", "letters"):
            raise ValueError(f"the tokeniser's 'clean' is {values.get('clean')!r:.40}, not words or letters")
        if not isinstance(values.get("marks"), bool):
            raise ValueError(f"the tokeniser's 'marks' is {values.get('marks')!r:.40}, not true or false")
        if not isinstance(words, list) or not are_words(words):
            raise ValueError("the tokeniser's 'stopwords' is not a list of words")
        if (units := values.get("units", "words")) not in ("words", "characters"):
            raise ValueError(f"the tokeniser's 'units' is {units!r:.40}, not words or characters")
        if not isinstance(negation := values.get("negation", False), bool):
            raise ValueError(f"the tokeniser's 'negation' is {negation!r:.40}, not true or false")
        return cls(values["clean"], values["marks"], tuple(words), units, negation)


@dataclass
class Tokens:
    """Rows of word ids, and a 128-bit hash of each row's whole text after cleaning, in which no word is negated."""

    ids: npt.NDArray[np.int32]  # of all rows, one row after another
    lengths: npt.NDArray[np.int32]  # ids of each row
    hashes: npt.NDArray[np.uint64]  # (rows, 2)


class Tokeniser:
    """Tokenises texts with a table of words.

    New words are added to the table. If the tokeniser is `frozen`, they get the id -1 instead.
    """

    def __init__(self, settings: TokeniserSettings, table: WordTable, *, frozen: bool = False, stop: int = 0) -> None:
        self.characters: CharacterTables = characters(settings.clean, settings.marks)
        self.table = table
        self.frozen = frozen
        self.stop = stop  # ids below this are stop words
        self._ids = np.empty(0, np.int32)
        self._negated = NegatedIds(table, frozen=frozen) if settings.negation else None

    @classmethod
    def counting(cls, settings: TokeniserSettings) -> Tokeniser:
        """A tokeniser with a table that holds only the stop words, which have the first ids."""
        table = WordTable()
        words = sorted({word.encode() for word in settings.stopwords})
        if words:
            table.add(*pack(words))
        return cls(settings, table, stop=len(table))

    def clear(self) -> None:
        """Give up the memory that results are written to, so that it is not shared with a copy."""
        self._ids = np.empty(0, np.int32)

    def __call__(self, texts: pa.Array, max_length: int = UNLIMITED) -> Tokens:
        data, offsets = string_buffers(texts)
        tokens, status = self._run(data, offsets, max_length, self.characters.kinds)
        slow = np.flatnonzero(status == SLOW)
        if len(slow):
            tokens = self._replace(tokens, slow, texts, max_length)
        if self._negated:
            self._negated(tokens.ids, tokens.lengths)
        return tokens

    def _run(
        self, data: npt.NDArray[np.uint8], offsets: npt.NDArray[Any], max_length: int, kinds: npt.NDArray[np.uint8]
    ) -> tuple[Tokens, npt.NDArray[np.uint8]]:
        rows, size = len(offsets) - 1, int(offsets[-1] - offsets[0])
        if len(self._ids) < size + rows:
            self._ids = np.empty(2 * (size + rows), np.int32)
        tokens = Tokens(self._ids, np.empty(rows, np.int32), np.empty((rows, 2), np.uint64))
        status, filled = np.empty(rows, np.uint8), np.zeros(1, np.int64)
        row, table = 0, self.table
        while True:
            row = tokenise(
                data, offsets, row, self.characters.fold, kinds, self.characters.lower,
                table.slots, table.arena, table.starts, table.used, self.frozen, self.stop, max_length,
                tokens.ids, tokens.lengths, tokens.hashes, status, filled,
            )  # fmt: skip
            if row == rows:
                break
            need = int(offsets[row + 1] - offsets[row])
            table.reserve(max(len(table) // 2, need // 2 + 64), 2 * need + 64)
        tokens.ids = tokens.ids[: filled[0]]
        return tokens, status

    def _replace(self, tokens: Tokens, slow: npt.NDArray[np.int64], texts: pa.Array, max_length: int) -> Tokens:
        """Clean and tokenise the slow rows, and put all rows in order again."""
        fast_ids = tokens.ids.copy()
        cleaned = pa.array([plain(text) for text in texts.take(pa.array(slow)).to_pylist()], pa.large_string())
        data, offsets = string_buffers(cleaned)
        cleaned_tokens, _ = self._run(data, offsets, max_length, self.characters.plain_kinds)
        lengths, hashes = tokens.lengths, tokens.hashes
        before = np.concatenate([[0], np.cumsum(lengths)])[slow]
        lengths[slow], hashes[slow] = cleaned_tokens.lengths, cleaned_tokens.hashes
        ids = np.insert(fast_ids, np.repeat(before, cleaned_tokens.lengths), cleaned_tokens.ids)
        return Tokens(ids, lengths, hashes)


def string_buffers(texts: pa.Array) -> tuple[npt.NDArray[np.uint8], npt.NDArray[Any]]:
    """The bytes and offsets of an Arrow string array, without a copy."""
    if not (pa.types.is_string(texts.type) or pa.types.is_large_string(texts.type)):
        texts = texts.cast(pa.large_string())
    kind = np.int64 if pa.types.is_large_string(texts.type) else np.int32
    _, offsets, data = texts.buffers()
    if len(texts) == 0:
        return np.empty(0, np.uint8), np.zeros(1, kind)
    bounds = np.frombuffer(offsets, kind)[texts.offset : texts.offset + len(texts) + 1]
    return (np.frombuffer(data, np.uint8) if data else np.empty(0, np.uint8)), bounds
