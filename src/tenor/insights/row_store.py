"""The rows that the map step has written: small columns in memory, tokens and texts mapped from disk."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from tenor.corpus.pieces import Piece
from tenor.evaluation.decision import MIDDLE, decide
from tenor.insights.rows import RowsResult, concatenated
from tenor.insights.scoring import Sides


@dataclass(frozen=True)
class Block:
    """Some consecutive rows: `values` of each row, one row after another."""

    first: int  # number of the first row
    values: NDArray[Any]
    lengths: NDArray[np.int64]

    @property
    def rows(self) -> slice:
        return slice(self.first, self.first + len(self.lengths))


class RowStore:
    """Rows numbered from 0 in the order of the input."""

    def __init__(
        self,
        files: Sequence[Path],
        pieces: Sequence[Piece],
        results: Sequence[RowsResult],
        threshold: float = MIDDLE,
    ) -> None:
        """`threshold` is that of the model, see `tenor.evaluation.decision`."""
        self._maps = [pa.memory_map(str(file)) for file in files]
        self._batches = [
            (reader, number)
            for reader in map(pa.ipc.open_file, self._maps)
            for number in range(reader.num_record_batches)
        ]
        counts = [self._batch(i).num_rows for i in range(len(self._batches))]
        self._first = np.concatenate([[0], np.cumsum(counts)]).astype(np.int64)
        self._pieces = pieces
        self._piece_first = np.concatenate([[0], np.cumsum([result.rows for result in results])]).astype(np.int64)
        self._lines_before = _lines_before(pieces, results)
        self.labels = self._column("label", np.int8)
        self.days = self._column("day", np.int32)
        self._lines = self._column("line", np.int64)
        batches = (self._batch(i).column("chances") for i in range(len(self._batches)))
        flat = concatenated([batch.flatten().to_numpy() for batch in batches], np.float32)
        self.chances = flat.reshape(len(self), -1) if len(self) else np.empty((0, 2), np.float32)
        sides = Sides.of(self.chances.shape[1])
        self.negative = self.chances[:, list(sides.negative)].sum(axis=1)
        self.positive = self.chances[:, list(sides.positive)].sum(axis=1)
        self.is_negative = np.isin(decide(self.chances, threshold), sides.negative)

    def __len__(self) -> int:
        return int(self._first[-1])

    def _batch(self, number: int) -> pa.RecordBatch:
        reader, place = self._batches[number]
        return reader.get_batch(place)

    def _column(self, name: str, kind: Any) -> NDArray[Any]:
        return concatenated([self._batch(i).column(name).to_numpy() for i in range(len(self._batches))], kind)

    def blocks(self, name: str) -> Iterator[Block]:
        """The column `tokens` or `words`, block by block."""
        for number, first in enumerate(self._first[:-1].tolist()):
            column = self._batch(number).column(name)
            lengths = np.diff(column.offsets.to_numpy())
            yield Block(first, column.flatten().to_numpy(), lengths)

    def mixed_blocks(self, name: str, seed: int, together: int = 16) -> Iterator[tuple[NDArray[np.int64], Block]]:
        """(numbers of rows, the column of these rows): several batches from random places at a time."""
        order = np.random.default_rng(seed).permutation(len(self._batches))
        for start in range(0, len(order), together):
            columns = [self._batch(int(i)).column(name) for i in order[start : start + together]]
            firsts = [self._first[i] for i in order[start : start + together]]
            rows = [np.arange(first, first + len(column)) for first, column in zip(firsts, columns, strict=True)]
            values = np.concatenate([column.flatten().to_numpy() for column in columns])
            lengths = np.concatenate([np.diff(column.offsets.to_numpy()) for column in columns])
            yield np.concatenate(rows), Block(int(firsts[0]), values, lengths)

    def groups(self) -> Iterator[tuple[slice, pa.Array]]:
        """(rows, the group of each row), block by block."""
        for number, first in enumerate(self._first[:-1].tolist()):
            column = self._batch(number).column("group")
            yield slice(first, first + len(column)), column

    def text(self, row: int) -> str:
        number = int(np.searchsorted(self._first, row, "right")) - 1
        text: str = self._batch(number).column("text")[row - int(self._first[number])].as_py()
        return text

    def place(self, row: int) -> tuple[str, int]:
        """(file, line) of a row; lines count from 1."""
        piece = int(np.searchsorted(self._piece_first, row, "right")) - 1
        return self._pieces[piece].source.shown, int(self._lines[row]) + self._lines_before[piece]

    def close(self) -> None:
        self._batches = []
        for mapped in self._maps:
            mapped.close()


def _lines_before(pieces: Sequence[Piece], results: Sequence[RowsResult]) -> list[int]:
    """Lines of each piece's file before the piece."""
    seen: dict[str, int] = {}
    before = []
    for piece, result in zip(pieces, results, strict=True):
        before.append(seen.get(piece.source.shown, 0))
        seen[piece.source.shown] = before[-1] + result.counts.lines
    return before
