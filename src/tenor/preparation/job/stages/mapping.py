"""The map stage: raw text to rows of provisional word ids, grouped by the hash of their text.

One task reads one piece and writes one or more slices. A slice numbers its words itself; the vocabulary replaces these
ids at the end of the job.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from tenor.corpus.labels import LabelRule
from tenor.corpus.pieces import Piece, read_piece
from tenor.engines.stage import JobStage
from tenor.preparation.job.outputs import finished, making, save_arrays, save_result
from tenor.preparation.job.reading import PieceCounts, Reading
from tenor.preparation.job.work_folder import REJECTS, WorkFolder
from tenor.preparation.tokeniser.tokenise import Tokeniser, TokeniserSettings
from tenor.store.ragged import copy_rows
from tenor.store.shard import token_type

SLICE_TOKENS = 24 << 20  # a slice is written when it holds more; a piece of a plain file has fewer
_ROW_COST = 8  # memory of a row beside its tokens, counted in tokens


@dataclass(frozen=True)
class MapTask:
    """Read, clean and tokenise one piece."""

    work: WorkFolder
    number: int  # of the piece
    num_pieces: int
    piece: Piece
    rule: LabelRule
    tokeniser: TokeniserSettings
    max_length: int  # tokens kept of each row
    part_bits: int  # the job has 2^part_bits text parts

    def slice_number(self, index: int) -> int:
        """The number of the piece's slice with this index."""
        return self.number + index * self.num_pieces


@dataclass(frozen=True)
class MapResult:
    counts: PieceCounts
    slices: int


@dataclass(frozen=True)
class SliceResult:
    ratings: tuple[str, ...]  # of the piece so far: a rating's code is its index


@dataclass(frozen=True)
class SliceRows:
    """The rows of a slice, grouped by text part; within a part in the order of the input."""

    ids: npt.NDArray[Any]  # provisional word ids of all rows, one row after another
    lengths: npt.NDArray[np.int32]  # tokens of each row
    starts: npt.NDArray[np.int64]  # where each row starts in `ids`
    codes: npt.NDArray[np.uint16]  # the code of each row's rating
    hashes: npt.NDArray[np.uint64]  # (rows, 2): of each row's text
    bounds: npt.NDArray[np.int64]  # (parts + 1,): the first row of each text part
    words: npt.NDArray[np.uint8]  # the bytes of all words, in the order of their ids
    word_starts: npt.NDArray[np.int64]  # where each word starts in `words`


@JobStage
def map_piece(task: MapTask) -> MapResult:
    """Read one piece into slices.

    A compressed file is one piece, however large. It is written as several slices, so that memory stays bounded. The
    output of the piece itself is written last.
    """
    path = task.work.piece(task.number)
    if (known := finished(path, MapResult)) is not None and _slices_are_whole(task, known.slices):
        return known
    mapper = Mapper(task)
    for batch in read_piece(task.piece):
        mapper.add(batch)
        if mapper.rows.held > SLICE_TOKENS:
            mapper.write_slice()
    mapper.write_slice()
    with making(path) as folder:
        mapper.rejects.write(folder / REJECTS)
        return save_result(folder, MapResult(mapper.counts(), mapper.slices))


def _slices_are_whole(task: MapTask, slices: int) -> bool:
    """Whether every slice of the piece is whole; the damaged ones are removed."""
    found = [finished(task.work.slice(task.slice_number(index)), SliceResult) for index in range(slices)]
    return None not in found


def slice_numbers(mapped: Sequence[MapResult]) -> list[int]:
    """The numbers of all slices, piece by piece."""
    return [number + index * len(mapped) for number, piece in enumerate(mapped) for index in range(piece.slices)]


class Mapper(Reading):
    """Reads one piece, and writes what it has read as a slice whenever `write_slice` is called."""

    rows: SliceBuffer

    def __init__(self, task: MapTask) -> None:
        super().__init__(task.piece, task.rule)
        self.task = task
        self.slices = 0  # written so far
        self.rows = SliceBuffer(task)

    def write_slice(self) -> None:
        with making(self.task.work.slice(self.task.slice_number(self.slices))) as folder:
            self.rows.write(folder)
            save_result(folder, SliceResult(tuple(self.ratings.names)))
        self.slices += 1
        self.rows = SliceBuffer(self.task)


class SliceBuffer:
    """The rows of a slice in memory."""

    def __init__(self, task: MapTask) -> None:
        self.part_bits = task.part_bits
        self.max_length = task.max_length
        self.tokeniser = Tokeniser.counting(task.tokeniser)
        self.held = 0  # tokens, plus the cost of the rows
        self.ids: list[npt.NDArray[Any]] = []  # of the narrowest type that holds the words known so far
        self.lengths: list[npt.NDArray[np.int32]] = []
        self.hashes: list[npt.NDArray[np.uint64]] = []
        self.codes: list[npt.NDArray[np.uint16]] = []

    def add(self, texts: pa.Array, codes: npt.NDArray[np.uint16], good: npt.NDArray[np.bool_]) -> npt.NDArray[np.bool_]:
        """Keep the good rows that have words; return whether each row has words."""
        tokens = self.tokeniser(texts, self.max_length)
        full = tokens.lengths > 0
        kept = good & full
        # Rows that are not good lose their tokens; rows without words have none.
        ids = tokens.ids if good.all() else tokens.ids[np.repeat(good, tokens.lengths)]
        self.ids.append(ids.astype(token_type(len(self.tokeniser.table))))
        self.lengths.append(tokens.lengths[kept])
        self.hashes.append(tokens.hashes[kept])
        self.codes.append(codes[kept])
        self.held += len(ids) + _ROW_COST * len(codes)
        return full

    def write(self, folder: Path) -> None:
        lengths, codes = _join(self.lengths, np.int32), _join(self.codes, np.uint16)
        hashes = np.concatenate(self.hashes) if self.hashes else np.empty((0, 2), np.uint64)
        order, bounds = _by_part(hashes[:, 0], self.part_bits)
        grouped = self._group(lengths, order)
        lengths = lengths[order]
        words, word_starts = self.tokeniser.table.contents()
        rows = SliceRows(
            ids=grouped,
            lengths=lengths,
            starts=np.cumsum(lengths, dtype=np.int64) - lengths,
            codes=codes[order],
            hashes=hashes[order],
            bounds=bounds,
            words=words,
            word_starts=word_starts,
        )
        save_arrays(folder, rows)

    def _group(self, lengths: npt.NDArray[np.int32], order: npt.NDArray[np.int64]) -> npt.NDArray[Any]:
        """The ids of the rows in the given order, one row after another."""
        targets = np.empty(len(order), np.int64)
        targets[order] = np.cumsum(lengths[order], dtype=np.int64) - lengths[order]
        grouped = np.empty(int(lengths.sum(dtype=np.int64)), token_type(len(self.tokeniser.table)))
        row = 0
        for ids, sizes in zip(self.ids, self.lengths, strict=True):
            copy_rows(ids, np.cumsum(sizes, dtype=np.int64) - sizes, sizes, targets[row : row + len(sizes)], grouped)
            row += len(sizes)
        return grouped


def _join(arrays: list[npt.NDArray[Any]], kind: type) -> npt.NDArray[Any]:
    return np.concatenate(arrays) if arrays else np.empty(0, kind)


def _by_part(hashes: npt.NDArray[np.uint64], bits: int) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]:
    """(order that groups the rows by the first `bits` bits of their hash, first row of each group)."""
    if not bits:
        return np.arange(len(hashes)), np.array([0, len(hashes)])
    parts = (hashes >> np.uint64(64 - bits)).astype(np.uint16)
    counts = np.bincount(parts, minlength=1 << bits)
    return np.argsort(parts, kind="stable"), np.concatenate([[0], np.cumsum(counts)])
