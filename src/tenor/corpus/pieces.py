"""A piece is what one map task reads: a whole file or a range of it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from tenor.corpus.batch import INVALID, Reject, RowBatch
from tenor.corpus.files.source import UTF8, Source
from tenor.corpus.files.streams import open_content
from tenor.corpus.formats.registry import format_named

SMALLEST, LARGEST = 8 << 20, 64 << 20  # bytes of a piece
_NUM_PIECES = 16  # of a medium-sized corpus, so that every worker gets some


@dataclass(frozen=True)
class Piece:
    source: Source
    start: int  # in units of the format: bytes, or row groups of Parquet
    end: int | None  # None: to the end of the file

    @property
    def size(self) -> int:
        """About how many bytes the piece has, for the progress bar."""
        return format_named(self.source.kind.format).size(self.source, self.start, self.end)


def whole(source: Source) -> Piece:
    """A source as one piece."""
    return Piece(source, source.body, None)


def plan(sources: Sequence[Source], smallest: int | None = None) -> list[Piece]:
    """Cut the sources into pieces. The number of workers has no influence, so that a stopped job can be resumed.

    Args:
        sources: The files to read.
        smallest: The smallest size of a piece in bytes; None takes the size that suits prepare.
    """
    total = sum(source.size for source in sources)
    size = max(smallest or SMALLEST, min(LARGEST, total // _NUM_PIECES))
    return [
        Piece(source, start, end)
        for source in sources
        for start, end in format_named(source.kind.format).cut(source, size)
    ]


def read_piece(piece: Piece) -> Iterator[RowBatch]:
    """The batches of one piece."""
    source = piece.source
    with open_content(source) as stream:
        for batch in format_named(source.kind.format).read(stream, source, piece.start, piece.end):
            if source.kind.encoding == UTF8:
                yield batch
            else:
                yield replace(batch, rejects=[_in_encoding(reject, source) for reject in batch.rejects])


def _in_encoding(reject: Reject, source: Source) -> Reject:
    return reject._replace(reason=name_encoding(reject.reason, source))


def name_encoding(reason: str, source: Source) -> str:
    """The reason for a reject, with the file's own encoding instead of UTF-8, to which it is converted."""
    return f"invalid {source.kind.encoding}" if reason == INVALID else reason
