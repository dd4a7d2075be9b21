"""Read the rows of a piece: rows with words and a rating are kept, every other row is counted by its reason.

If the source keeps unlabelled rows, rows with words and without a rating are kept too.
"""

from __future__ import annotations

import json
from array import array
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from tenor.corpus.batch import Reject, RowBatch, indices_of
from tenor.corpus.labels import NO_RATING, LabelRule, canonical
from tenor.corpus.pieces import Piece
from tenor.errors import CorpusError

BAD_RATING = "bad rating"
_MAX_RATINGS = 60_000


@dataclass(frozen=True)
class PieceCounts:
    """How many rows a piece has, and how many of them are not kept."""

    read: int
    lines: int
    bytes: int  # of the piece, for the progress shown
    rejected: dict[str, int]  # by reason
    empty: int  # rows without a word: nothing is wrong with them, but nothing can be learnt from them
    ratings: tuple[str, ...]  # every rating of the piece in its canonical spelling; a rating's code is its index


class RowSink(Protocol):
    """Where the rows of a piece go."""

    def add(self, texts: pa.Array, codes: npt.NDArray[np.uint16], good: npt.NDArray[np.bool_]) -> npt.NDArray[np.bool_]:
        """Keep the good rows that have words.

        Args:
            texts: The text of each row.
            codes: The code of each row's rating; see `Ratings`.
            good: Whether the row has a rating, or is kept without one.

        Returns:
            Whether each row has words.
        """
        ...


class Reading:
    """Reads one piece, batch by batch, into `rows`."""

    rows: RowSink

    def __init__(self, piece: Piece, rule: LabelRule) -> None:
        self.ratings = Ratings(rule, piece.source.shown, piece.source.unlabelled)
        self.rejects = Rejects()
        self._bytes = piece.size
        self._read = 0
        self._lines = 0
        self._empty = 0

    def add(self, batch: RowBatch) -> None:
        self._read += batch.rows.num_rows + len(batch.rejects)
        self._lines += batch.lines
        self.rejects.add(batch.rejects)
        if not batch.rows.num_rows:
            return
        text, rating, lines = batch.rows.columns
        codes, good = self.ratings.codes(rating)
        full = self.rows.add(text, codes, good)
        if not (good.all() and full.all()):
            self.rejects.add(Reject(line, BAD_RATING) for line in lines.filter(pa.array(~good)).to_pylist())
            self._empty += int((good & ~full).sum())

    def counts(self) -> PieceCounts:
        """The counts of the rows read so far."""
        return PieceCounts(
            read=self._read,
            lines=self._lines,
            bytes=self._bytes,
            rejected=self.rejects.counts(),
            empty=self._empty,
            ratings=tuple(self.ratings.names),
        )


class Rejects:
    """The rejected rows of a piece, ten bytes each, because a hostile file may have tens of millions of them."""

    def __init__(self) -> None:
        self.reasons: dict[str, int] = {}
        self._lines, self._codes = array("q"), array("H")

    def add(self, rejects: Iterable[Reject]) -> None:
        for line, reason in rejects:
            self._lines.append(line)
            self._codes.append(self.reasons.setdefault(reason, len(self.reasons)))

    def counts(self) -> dict[str, int]:
        """Number of rejected rows by reason."""
        numbers = np.bincount(np.asarray(self._codes, np.int64), minlength=len(self.reasons))
        return {reason: int(numbers[code]) for reason, code in self.reasons.items()}

    def first_line(self) -> int | None:
        """The line of the first rejected row."""
        return min(self._lines, default=None)

    def write(self, path: Path) -> None:
        """Write one JSON line, [line, reason], per rejected row, ordered by line."""
        names = list(self.reasons)
        with path.open("w", encoding="utf-8") as out:
            for index in np.lexsort((np.asarray(self._codes), np.asarray(self._lines))):
                out.write(f"{json.dumps([self._lines[index], names[self._codes[index]]])}\n")


class Ratings:
    """Numbers the ratings of a piece in the order in which they first occur.

    If `unlabelled`, NO_RATING is one of them: the rating of rows that are kept without one.
    """

    def __init__(self, rule: LabelRule, where: str, unlabelled: bool = False) -> None:
        self.rule = rule
        self.where = where
        self.unlabelled = unlabelled
        self.names: dict[str, int] = {}  # canonical spelling → code
        self._codes: dict[str, int] = {}  # spelling in the file → code

    def codes(self, rating: pa.Array) -> tuple[npt.NDArray[np.uint16], npt.NDArray[np.bool_]]:
        """(the code of each row's rating, whether the row can be kept with it)."""
        encoded = rating.dictionary_encode()
        table = np.array([self._code(raw) for raw in encoded.dictionary.to_pylist()] or [-1], np.int64)
        codes = table[indices_of(encoded)]
        return codes.astype(np.uint16), codes >= 0

    def _code(self, raw: str) -> int:
        """The code of a rating; -1 if it is not valid."""
        if raw not in self._codes:
            name = canonical(raw)
            if not (self.rule.accepts(name) or (self.unlabelled and name == NO_RATING)):
                return -1  # not stored: there may be millions of different ones
            self._codes[raw] = self.names.setdefault(name, len(self.names))
            if len(self.names) > _MAX_RATINGS:
                raise CorpusError(
                    f"has more than {_MAX_RATINGS:,} different ratings",
                    where=self.where,
                    remedy="check that --label-column names the column of the rating",
                )
        return self._codes[raw]
