"""The map stage: one piece of raw text to rows of provisional word ids, grouped by the hash of their text."""

from __future__ import annotations

import json
from array import array
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from tenor.corpus.batch import Batch, Reject
from tenor.corpus.labels import LabelRule, canonical
from tenor.corpus.pieces import Piece, read_piece
from tenor.errors import CorpusError
from tenor.preparation.tokeniser import Tokeniser, TokeniserSettings
from tenor.preparation.workfolder import finished, making, part_path, save, save_meta
from tenor.store.ragged import copy_rows
from tenor.store.shard import token_type

STAGE = "tenor.preparation.mapping:run"
FOLDER = "pieces"
REJECTS = "rejects.jsonl"
HELD = 24 << 20  # tokens of a slice: more than any piece of a plain file has
_ROW = 8  # what a row costs beside its tokens, in tokens
_MAX_RATINGS = 60_000


def run(task: dict[str, Any]) -> dict[str, Any]:
    """Read, clean and tokenise one piece; what it found is kept under pieces/NUMBER.

    A packed file is one piece however large. What would take too much memory goes into further slices, numbered
    NUMBER + k · `stride`; the first slice is written last, and then the piece is done.
    """
    path = part_path(task["work"], FOLDER, task["number"])
    if (known := finished(path)) is not None:
        return known
    mapper = Mapper(task)
    for batch in read_piece(Piece.from_dict(task["piece"])):
        mapper.add(batch)
        if mapper.rows.held > HELD:
            mapper.put_aside()
    with making(path) as folder:
        return mapper.write(folder)


def slice_numbers(mapped: Sequence[dict[str, Any]]) -> list[int]:
    """The folders under pieces/ that hold rows, from what the pieces' tasks gave back."""
    return [number + k * len(mapped) for number, piece in enumerate(mapped) for k in range(piece["slices"])]


class Mapper:
    """Gathers what one piece gives."""

    def __init__(self, task: dict[str, Any]) -> None:
        self.task = task
        piece = Piece.from_dict(task["piece"])
        self.ratings = Ratings(LabelRule.from_dict(task["rule"]), piece.source.path)
        self.rejects = Rejects()
        self.size = piece.size
        self.read = 0
        self.lines = 0
        self.slices = 1
        self.rows = Slice(task)

    def add(self, batch: Batch) -> None:
        self.read += batch.rows.num_rows + len(batch.rejects)
        self.lines += batch.lines
        self.rejects.add(batch.rejects)
        if not batch.rows.num_rows:
            return
        text, rating, lines = batch.rows.columns
        codes, good = self.ratings.codes(rating)
        full = self.rows.add(text, codes, good)
        if not (good.all() and full.all()):
            self._refuse(lines, ~good, "bad rating")
            self._refuse(lines, good & ~full, "empty")

    def _refuse(self, lines: pa.Array, bad: npt.NDArray[np.bool_], reason: str) -> None:
        self.rejects.add(Reject(line, reason) for line in lines.filter(pa.array(bad)).to_pylist())

    def put_aside(self) -> None:
        """Write what is held as a further slice, and hold nothing."""
        number = self.task["number"] + self.slices * self.task["stride"]
        with making(part_path(self.task["work"], FOLDER, number)) as folder:
            self.rows.write(folder)
            save_meta(folder, {"ratings": list(self.ratings.names)})
        self.slices += 1
        self.rows = Slice(self.task)

    def write(self, folder: Path) -> dict[str, Any]:
        self.rows.write(folder)
        self.rejects.write(folder / REJECTS)
        return save_meta(
            folder,
            {
                "slices": self.slices,
                "read": self.read,
                "lines": self.lines,
                "bytes": self.size,
                "rejected": self.rejects.counts(),
                "ratings": list(self.ratings.names),
            },
        )


class Slice:
    """Rows in memory, with a numbering of words of their own."""

    def __init__(self, task: dict[str, Any]) -> None:
        self.bits = task["bits"]
        self.max_length = task["max_length"]
        self.tokeniser = Tokeniser.counting(TokeniserSettings.from_dict(task["tokeniser"]))
        self.held = 0  # tokens, and what a row costs beside them
        self.ids: list[npt.NDArray[Any]] = []  # as narrow as the words known by then allow
        self.lengths: list[npt.NDArray[np.int32]] = []
        self.hashes: list[npt.NDArray[np.uint64]] = []
        self.codes: list[npt.NDArray[np.uint16]] = []

    def add(self, texts: pa.Array, codes: npt.NDArray[np.uint16], good: npt.NDArray[np.bool_]) -> npt.NDArray[np.bool_]:
        """Take in the good rows that have words; which rows have any."""
        tokens = self.tokeniser(texts, self.max_length)
        full = tokens.lengths > 0
        kept = good & full
        # Tokens of refused rows go too; a row without tokens has none to go.
        ids = tokens.ids if good.all() else tokens.ids[np.repeat(good, tokens.lengths)]
        self.ids.append(ids.astype(token_type(len(self.tokeniser.table))))
        self.lengths.append(tokens.lengths[kept])
        self.hashes.append(tokens.hashes[kept])
        self.codes.append(codes[kept])
        self.held += len(ids) + _ROW * len(codes)
        return full

    def write(self, folder: Path) -> None:
        lengths, codes = _join(self.lengths, np.int32), _join(self.codes, np.uint16)
        hashes = np.concatenate(self.hashes) if self.hashes else np.empty((0, 2), np.uint64)
        order, bounds = _by_part(hashes[:, 0], self.bits)
        grouped = self._group(lengths, order)
        lengths = lengths[order]
        words, word_starts = self.tokeniser.table.contents()
        save(
            folder,
            ids=grouped,
            lengths=lengths,
            starts=np.cumsum(lengths, dtype=np.int64) - lengths,
            codes=codes[order],
            hashes=hashes[order],
            bounds=bounds,
            words=words,
            word_starts=word_starts,
        )

    def _group(self, lengths: npt.NDArray[np.int32], order: npt.NDArray[np.int64]) -> npt.NDArray[Any]:
        """The rows' ids in the given order, one after the other."""
        places = np.empty(len(order), np.int64)
        places[order] = np.cumsum(lengths[order], dtype=np.int64) - lengths[order]
        grouped = np.empty(int(lengths.sum(dtype=np.int64)), token_type(len(self.tokeniser.table)))
        row = 0
        for ids, part in zip(self.ids, self.lengths, strict=True):
            copy_rows(ids, np.cumsum(part, dtype=np.int64) - part, part, places[row : row + len(part)], grouped)
            row += len(part)
        return grouped


class Rejects:
    """The piece's refused rows, ten bytes each: a hostile file may hold tens of millions of them."""

    def __init__(self) -> None:
        self.reasons: dict[str, int] = {}
        self._lines, self._codes = array("q"), array("H")

    def add(self, rejects: Iterable[Reject]) -> None:
        for line, reason in rejects:
            self._lines.append(line)
            self._codes.append(self.reasons.setdefault(reason, len(self.reasons)))

    def counts(self) -> dict[str, int]:
        numbers = np.bincount(np.asarray(self._codes, np.int64), minlength=len(self.reasons))
        return {reason: int(numbers[code]) for reason, code in self.reasons.items()}

    def write(self, path: Path) -> None:
        """One JSON line each, in the order of the lines."""
        names = list(self.reasons)
        with path.open("w", encoding="utf-8") as out:
            for place in np.lexsort((np.asarray(self._codes), np.asarray(self._lines))):
                out.write(f"{json.dumps([self._lines[place], names[self._codes[place]]])}\n")


class Ratings:
    """The piece's own numbering of the ratings it meets."""

    def __init__(self, rule: LabelRule, where: str) -> None:
        self.rule = rule
        self.where = where
        self.names: dict[str, int] = {}  # canonical spelling → code
        self._codes: dict[str, int] = {}  # raw spelling → code, -1 for one that is no rating

    def codes(self, rating: pa.Array) -> tuple[npt.NDArray[np.uint16], npt.NDArray[np.bool_]]:
        encoded = rating.dictionary_encode()
        table = np.array([self._code(raw) for raw in encoded.dictionary.to_pylist()] or [-1], np.int64)
        codes = table[np.asarray(encoded.indices)]
        return codes.astype(np.uint16), codes >= 0

    def _code(self, raw: str) -> int:
        if raw not in self._codes:
            name = canonical(raw)
            if not self.rule.accepts(name):
                return -1  # not remembered: there may be millions of different ones
            self._codes[raw] = self.names.setdefault(name, len(self.names))
            if len(self.names) > _MAX_RATINGS:
                raise CorpusError(
                    f"more than {_MAX_RATINGS} different ratings", where=self.where, remedy="is --label-column right?"
                )
        return self._codes[raw]


def _join(parts: list[npt.NDArray[Any]], kind: type) -> npt.NDArray[Any]:
    return np.concatenate(parts) if parts else np.empty(0, kind)


def _by_part(hashes: npt.NDArray[np.uint64], bits: int) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]:
    """(order that groups rows by the first `bits` of their hash, where each group starts)."""
    if not bits:
        return np.arange(len(hashes)), np.array([0, len(hashes)])
    parts = (hashes >> np.uint64(64 - bits)).astype(np.uint16)
    counts = np.bincount(parts, minlength=1 << bits)
    return np.argsort(parts, kind="stable"), np.concatenate([[0], np.cumsum(counts)])
