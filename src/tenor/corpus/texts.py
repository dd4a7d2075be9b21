"""Texts without labels, for prediction: in any known format, or plain text with one review per line."""

from __future__ import annotations

import itertools
import sys
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO, cast

import pyarrow as pa

from tenor.corpus.batch import Reject, RowBatch
from tenor.corpus.columns import ColumnChooser, Wanted
from tenor.corpus.files.inputs import expand
from tenor.corpus.files.source import Source
from tenor.corpus.files.streams import open_content
from tenor.corpus.formats.base import BadLine, LineFormat, Record, count_newlines
from tenor.corpus.formats.plain_text import read as read_plain_text
from tenor.corpus.formats.registry import format_named, has_known_suffix
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


def text_sources(inputs: Sequence[str | Path], wanted: Wanted = _ANY) -> list[Source]:
    """Every input file as a source of texts: files, folders, patterns, URLs and the members of zip archives."""
    files = expand(inputs, has_known_suffix)
    return [text_source(path, wanted, member) for path in files for member in members(path, wanted)]


def text_source(path: str, wanted: Wanted = _ANY, member: str | None = None) -> Source:
    """A file as a source of texts; a title column, if the caller names one, is put before the text."""
    if member is None:
        names = members(path, wanted)
        if len(names) > 1:
            raise CorpusError(f"contains {len(names)} files", where=path, remedy="unpack it and give one of them")
        member = names[0]
    source, start = open_source(path, wanted, member)
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


@dataclass(frozen=True)
class TextRows:
    """Some rows of a piece."""

    texts: pa.Array
    lines: list[int]  # counted from 1 within the piece
    records: list[Record] | None  # all columns of each row, if they are wanted
    rejects: list[Reject]  # rows that cannot be read


def read_text_rows(piece: Piece, *, with_records: bool = False) -> Iterator[TextRows]:
    """The rows of one piece, also of those that cannot be read.

    Args:
        piece: A piece of a source that `text_source` has made.
        with_records: Whether to read all columns.
    """
    source, found = piece.source, format_named(piece.source.kind.format)
    with open_content(source) as stream:
        if not found.has_labels:
            yield from counted_rows(read_piece_texts(piece))
        elif with_records:
            for batch, records in found.read_records(stream, source, piece.start, piece.end):
                yield _text_rows(batch, records, source)
        else:
            for batch in found.read(stream, source, piece.start, piece.end):
                yield _text_rows(batch, None, source)


def counted_rows(batches: Iterable[pa.Array]) -> Iterator[TextRows]:
    """The rows of plain text, which has one review per line."""
    line = 1
    for texts in batches:
        yield TextRows(texts, list(range(line, line + len(texts))), None, [])
        line += len(texts)


def _text_rows(batch: RowBatch, records: list[Record] | None, source: Source) -> TextRows:
    rejects = [Reject(line, name_encoding(reason, source)) for line, reason in batch.rejects]
    return TextRows(batch.rows.column(0), batch.rows.column(2).to_pylist(), records, rejects)


def line_error(piece: Piece, reject: Reject) -> CorpusError:
    """The error for a row that cannot be read, with its line in the file."""
    line = reject.line + (_lines_before(piece) if piece.start > piece.source.body else 0)
    return CorpusError(f"line {line}: {reject.reason}", where=piece.source.shown, remedy="fix or remove the line")


def lines_before_each(pieces: Sequence[Piece]) -> list[int]:
    """The lines of its file before each piece. A file is read once, however many pieces it has."""
    found: list[int] = []
    for _, group in itertools.groupby(pieces, lambda piece: (piece.source.path, piece.source.kind.member)):
        found += _lines_of_source(list(group))
    return found


def _lines_of_source(pieces: list[Piece]) -> list[int]:
    source = pieces[0].source
    reader, found, lines, at = format_named(source.kind.format), list[int](), 0, 0
    with open_content(source) as stream:
        for piece in pieces:
            if piece.start <= source.body:
                found.append(0)
            elif reader.is_binary:
                found.append(reader.lines_before(stream, source, piece.start))
            else:  # a line of a line format belongs to the piece in which its first byte lies
                goal = piece.start - isinstance(reader, LineFormat)
                lines, at = lines + count_newlines(stream, goal - at), goal
                found.append(lines + isinstance(reader, LineFormat))
    return found


def _lines_before(piece: Piece) -> int:
    with open_content(piece.source) as stream:
        return format_named(piece.source.kind.format).lines_before(stream, piece.source, piece.start)
