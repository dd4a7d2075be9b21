"""A piece is what one map task reads: a whole file, or a range of a large plain one."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from tenor.corpus import delimited, fasttext, jsonlines
from tenor.corpus.batch import Batch
from tenor.corpus.columns import Columns
from tenor.corpus.formats import Kind
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
        return (self.source.size if self.end is None else self.end) - self.start

    def as_dict(self) -> dict[str, Any]:
        return asdict(self)

    @classmethod
    def from_dict(cls, values: dict[str, Any]) -> Piece:
        source = dict(values["source"])
        source["kind"] = Kind(**source["kind"])
        source["columns"] = source["columns"] and Columns(**source["columns"])
        source["header"] = tuple(source["header"])
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
    if source.kind.compression or source.kind.format not in ("json", "fasttext") or source.size <= size:
        return [whole(source)]
    count = -(-source.size // size)
    bounds = [source.size * i // count for i in range(count + 1)]
    return [Piece(source, start, end) for start, end in itertools.pairwise(bounds)]


def read_piece(piece: Piece) -> Iterator[Batch]:
    """The batches of one piece."""
    source = piece.source
    with open_unpacked(source.path, source.kind.compression) as stream:
        if source.kind.format in DELIMITERS:
            stream.read(piece.start)
            delimiter, columns = DELIMITERS[source.kind.format], source.columns
            assert columns is not None
            yield from delimited.read(stream, delimiter, list(source.header), columns)
        elif source.kind.format == "json":
            assert source.columns is not None
            yield from jsonlines.read(stream, source.columns, piece.start, piece.end)
        else:
            yield from fasttext.read(stream, piece.start, piece.end)
