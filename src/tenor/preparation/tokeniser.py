"""Texts to word ids: the kernel run over Arrow's buffers, with the rows it leaves to Python put back in place."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from tenor.preparation.characters import Characters, characters
from tenor.preparation.clean import plain
from tenor.preparation.kernel import SLOW, tokenise
from tenor.preparation.words import WordTable, pack

UNLIMITED = 1 << 40


@dataclass(frozen=True)
class TokeniserSettings:
    """What a run must carry along to read text as its training data was read."""

    clean: str = "words"
    marks: bool = True
    stopwords: tuple[str, ...] = ()

    def as_dict(self) -> dict[str, Any]:
        return {**asdict(self), "stopwords": list(self.stopwords)}

    @classmethod
    def from_dict(cls, values: dict[str, Any]) -> TokeniserSettings:
        return cls(values["clean"], values["marks"], tuple(values["stopwords"]))


@dataclass
class Tokens:
    """Ragged rows of word ids, and a 128-bit hash of each row's whole cleaned text."""

    ids: npt.NDArray[np.int32]
    lengths: npt.NDArray[np.int32]
    hashes: npt.NDArray[np.uint64]  # (rows, 2)


class Tokeniser:
    """Tokenise with a table of words that grows (or, `frozen`, gives -1 for words it does not hold)."""

    def __init__(self, settings: TokeniserSettings, table: WordTable, *, frozen: bool = False, stop: int = 0) -> None:
        self.characters: Characters = characters(settings.clean, settings.marks)
        self.table = table
        self.frozen = frozen
        self.stop = stop  # ids below it are stop words
        self._ids = np.empty(0, np.int32)

    @classmethod
    def counting(cls, settings: TokeniserSettings) -> Tokeniser:
        """A tokeniser with an empty table, apart from the stop words, which take the first ids."""
        table = WordTable()
        words = sorted({word.encode() for word in settings.stopwords})
        if words:
            table.add(*pack(words))
        return cls(settings, table, stop=len(table))

    def __call__(self, texts: pa.Array, max_length: int = UNLIMITED) -> Tokens:
        data, offsets = string_buffers(texts)
        tokens, status = self._run(data, offsets, max_length, self.characters.kinds)
        slow = np.flatnonzero(status == SLOW)
        return self._replace(tokens, slow, texts, max_length) if len(slow) else tokens

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
        """Tokenise the slow rows from their cleaned text and lay all rows out in order again."""
        fast_ids = tokens.ids.copy()
        cleaned = pa.array([plain(text) for text in texts.take(pa.array(slow)).to_pylist()], pa.large_string())
        data, offsets = string_buffers(cleaned)
        mended, _ = self._run(data, offsets, max_length, self.characters.plain_kinds)
        lengths, hashes = tokens.lengths, tokens.hashes
        before = np.concatenate([[0], np.cumsum(lengths)])[slow]
        lengths[slow], hashes[slow] = mended.lengths, mended.hashes
        ids = np.insert(fast_ids, np.repeat(before, mended.lengths), mended.ids)
        return Tokens(ids, lengths, hashes)


def string_buffers(texts: pa.Array) -> tuple[npt.NDArray[np.uint8], npt.NDArray[Any]]:
    """An Arrow string array's own bytes and offsets, without a copy."""
    if not (pa.types.is_string(texts.type) or pa.types.is_large_string(texts.type)):
        texts = texts.cast(pa.large_string())
    kind = np.int64 if pa.types.is_large_string(texts.type) else np.int32
    _, offsets, data = texts.buffers()
    if len(texts) == 0:
        return np.empty(0, np.uint8), np.zeros(1, kind)
    bounds = np.frombuffer(offsets, kind)[texts.offset : texts.offset + len(texts) + 1]
    return (np.frombuffer(data, np.uint8) if data else np.empty(0, np.uint8)), bounds
