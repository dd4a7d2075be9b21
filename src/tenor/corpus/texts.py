"""Texts without labels, for prediction: in any known format, or plain text with one review per line."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from typing import BinaryIO, cast

import pyarrow as pa

from tenor.corpus.columns import ColumnChooser, Wanted
from tenor.corpus.files.source import Source
from tenor.corpus.files.streams import open_content
from tenor.corpus.formats.base import BadLine
from tenor.corpus.formats.plain_text import read as read_plain_text
from tenor.corpus.formats.registry import format_named
from tenor.corpus.pieces import Piece, name_encoding, whole
from tenor.corpus.sources import members, open_source
from tenor.errors import CorpusError

_ANY = Wanted()


def read_texts(path: str, wanted: Wanted = _ANY) -> Iterator[pa.Array]:
    """Arrays of texts in the order of the input, one text per row; `-` is standard input with one review per line.

    Raises:
        CorpusError: A row cannot be read. Prediction must answer for each row, so none is left out.
    """
    if path == "-":
        stream = sys.stdin.buffer
        try:
            yield from read_plain_text(cast(BinaryIO, getattr(stream, "raw", stream)))  # raw: lines as they arrive
        except BadLine as bad:
            raise CorpusError(f"line {bad.line}: {bad.reason}", where="standard input", remedy=bad.remedy) from None
    else:
        yield from read_piece_texts(whole(text_source(path, wanted)))


def text_source(path: str, wanted: Wanted = _ANY) -> Source:
    """A file as a source of texts; a title column, if the caller names one, is put before the text."""
    names = members(path, wanted)
    if len(names) > 1:
        raise CorpusError(f"contains {len(names)} files", where=path, remedy="unpack it and give one of them")
    source, start = open_source(path, wanted, names[0])
    found = format_named(source.kind.format)
    if not found.has_columns and wanted.title is not None:
        remedy = "omit --title-column, or give a file with columns"
        raise CorpusError(f"has no columns, so none called {wanted.title!r}", where=path, remedy=remedy)
    return source.laid_out(found.inspect(source, start, ColumnChooser(wanted, source.shown, with_rating=False)))


def read_piece_texts(piece: Piece) -> Iterator[pa.Array]:
    """The texts of one piece of a source that `text_source` has made."""
    source, found = piece.source, format_named(piece.source.kind.format)
    try:
        with open_content(source) as stream:
            yield from found.read_texts(stream, source, piece.start, piece.end)
    except BadLine as bad:
        line = bad.line + (_lines_before(piece) if piece.start > source.body else 0)
        reason = name_encoding(bad.reason, source)
        raise CorpusError(f"line {line}: {reason}", where=source.shown, remedy=bad.remedy) from None


def _lines_before(piece: Piece) -> int:
    with open_content(piece.source) as stream:
        return format_named(piece.source.kind.format).lines_before(stream, piece.source, piece.start)
