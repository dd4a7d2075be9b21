"""A piece is what one map task reads: a whole file, or a range of a large plain one."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from tenor.corpus import delimited, fasttext, jsonlines, parquet
from tenor.corpus.batch import Batch
from tenor.corpus.columns import Columns
from tenor.corpus.formats import Kind
from tenor.corpus.remote import can_seek
from tenor.corpus.sources import DELIMITERS, Source
from tenor.corpus.streams import open_unpacked

SMALLEST, LARGEST = 8 << 20, 64 << 20
_WISHED = 16  # pieces, so that a middling corpus uses every worker


@dataclass(frozen=True)
class Piece:
    source: Source
    start: int
    end: int | None  # None: to the end of the file

    @property
    def size(self) -> int:
        """About how many bytes it is, for the progress shown."""
        if self.source.kind.format == "parquet":
            return sum(self.source.groups[self.start : self.end])
        return (self.source.size if self.end is None else self.end) - self.start

    def as_dict(self) -> dict[str, Any]:
        return asdict(self)

    @classmethod
    def from_dict(cls, values: dict[str, Any]) -> Piece:
        source = dict(values["source"])
        source["kind"] = Kind(**source["kind"])
        source["columns"] = source["columns"] and Columns(**source["columns"])
        source["header"], source["groups"] = tuple(source["header"]), tuple(source["groups"])
        return cls(Source(**source), values["start"], values["end"])


def whole(source: Source) -> Piece:
    """A source as one piece."""
    return Piece(source, source.body, None)


def plan(sources: Sequence[Source]) -> list[Piece]:
    """Cut the sources into pieces. It does not look at the number of workers, so that a job can be taken up again."""
    total = sum(source.size for source in sources)
    size = max(SMALLEST, min(LARGEST, total // _WISHED))
    return [piece for source in sources for piece in _cut(source, size)]


def _cut(source: Source, size: int) -> list[Piece]:
    if source.kind.format == "parquet":
        return _cut_groups(source, size)
    if source.kind.compression or source.size <= size or not can_seek(source.path):
        return [whole(source)]
    if source.kind.format in DELIMITERS:
        with open_unpacked(source.path, "") as stream:
            bounds = delimited.find_cuts(stream, DELIMITERS[source.kind.format], len(source.header), source.body, size)
        bounds.append(source.size)
    else:
        count = -(-source.size // size)
        bounds = [source.size * i // count for i in range(count + 1)]
    return [Piece(source, start, end) for start, end in itertools.pairwise(bounds)]


def _cut_groups(source: Source, size: int) -> list[Piece]:
    """Row groups together until they make a piece; start and end count groups."""
    bounds, held = [0], 0
    for number, group in enumerate(source.groups):
        held += group
        if held >= size:
            bounds.append(number + 1)
            held = 0
    if bounds[-1] != len(source.groups):
        bounds.append(len(source.groups))
    return [Piece(source, start, end) for start, end in itertools.pairwise(bounds)]


def read_piece(piece: Piece) -> Iterator[Batch]:
    """The batches of one piece."""
    source = piece.source
    with open_unpacked(source.path, source.kind.compression, source.folder) as stream:
        if source.kind.format == "fasttext":
            yield from fasttext.read(stream, piece.start, piece.end)
            return
        assert source.columns is not None
        if source.kind.format == "parquet":
            yield from parquet.read(stream, source.columns, source.path, piece.start, piece.end)
        elif source.kind.format == "json":
            yield from jsonlines.read(stream, source.columns, piece.start, piece.end)
        else:
            if source.kind.compression:
                stream.read(piece.start)
            else:
                stream.seek(piece.start)
            size = None if piece.end is None else piece.end - piece.start
            delimiter, is_first = DELIMITERS[source.kind.format], piece.start == source.body
            yield from delimited.read(stream, delimiter, list(source.header), source.columns, size, is_first)
