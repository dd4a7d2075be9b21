"""Texts without labels, for prediction: any known format, or plain text with one review a line."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from dataclasses import replace
from typing import BinaryIO, cast

import pyarrow as pa

from tenor.corpus import delimited, parquet
from tenor.corpus.batch import Batch
from tenor.corpus.blocks import line_blocks
from tenor.corpus.columns import Columns, choose_text
from tenor.corpus.fields import first_keys, more_keys
from tenor.corpus.pieces import Piece, read_piece, whole
from tenor.corpus.sources import DELIMITERS, Source, recognise
from tenor.corpus.streams import open_unpacked, stamp
from tenor.errors import CorpusError


def read_texts(path: str, text_column: str | None = None) -> Iterator[pa.Array]:
    """Arrays of texts in the order of the input, one for every row; `-` is standard input, one review a line.

    A row that cannot be read stops it with CorpusError: an answer for each row is expected.
    """
    if path == "-":
        stream = sys.stdin.buffer
        yield from _plain(cast(BinaryIO, getattr(stream, "raw", stream)), "standard input")  # lines as they come
    else:
        yield from read_piece_texts(whole(text_source(path, text_column)))


def text_source(path: str, text_column: str | None = None) -> Source:
    """The file as a source whose rows are texts alone."""
    kind, start = recognise(path)
    source = Source(path, stamp(path)[0], kind, None)
    if kind.format == "json":
        try:
            text = choose_text(first_keys(start), text_column, path)
        except CorpusError:
            text = choose_text(more_keys(path, kind.compression)[0], text_column, path)
        return replace(source, columns=Columns(text, None))
    if kind.format in ("text", "fasttext"):
        return source
    with open_unpacked(path, kind.compression) as stream:
        if kind.format == "parquet":
            header, groups = parquet.inspect(stream, path)
            source = replace(source, groups=tuple(groups))
        else:
            header, body = delimited.read_header(stream, DELIMITERS[kind.format], path)
            source = replace(source, header=tuple(header), body=body)
    return replace(source, columns=Columns(choose_text(header, text_column, path), None))


def read_piece_texts(piece: Piece) -> Iterator[pa.Array]:
    """The texts of one piece of a source made by `text_source`."""
    source = piece.source
    if source.kind.format == "text":
        with open_unpacked(source.path, source.kind.compression, source.folder) as stream:
            yield from _plain(stream, source.path)
        return
    for batch in read_piece(piece):
        yield _texts(batch, source.path)


def _texts(batch: Batch, where: str) -> pa.Array:
    if batch.rejects:
        first = batch.rejects[0]
        raise CorpusError(f"line {first.line}: {first.reason}", where=where, remedy="mend or remove the line")
    return batch.rows.column(0)


def _plain(stream: BinaryIO, where: str) -> Iterator[pa.Array]:
    line = 1
    for block in line_blocks(stream):
        if block is None:
            raise CorpusError(f"line {line} is too long", where=where, remedy="give one review a line")
        try:
            texts = str(block, "utf-8").split("\n")[:-1]
        except UnicodeDecodeError as error:
            line += bytes(block[: error.start]).count(b"\n")
            raise CorpusError(f"line {line}: invalid UTF-8", where=where, remedy="convert it to UTF-8") from error
        line += len(texts)
        yield pa.array(texts, pa.large_string())
