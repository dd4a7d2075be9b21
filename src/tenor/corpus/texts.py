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
from tenor.corpus.pieces import read_piece, whole
from tenor.corpus.sources import DELIMITERS, Source, json_fields, recognise
from tenor.corpus.streams import open_unpacked
from tenor.errors import CorpusError


def read_texts(path: str, text_column: str | None = None) -> Iterator[pa.Array]:
    """Arrays of texts in the order of the input, one for every row; `-` is standard input, one review a line.

    A row that cannot be read stops it with CorpusError: an answer for each row is expected.
    """
    if path == "-":
        yield from _plain(cast(BinaryIO, sys.stdin.buffer), "standard input")
        return
    kind, start = recognise(path)
    if kind.format == "text":
        with open_unpacked(path, kind.compression) as stream:
            yield from _plain(stream, path)
        return
    source = Source(path, 0, kind, None)
    if kind.format == "json":
        source = replace(source, columns=Columns(choose_text(json_fields(start), text_column, path), None))
    elif kind.format != "fasttext":
        with open_unpacked(path, kind.compression) as stream:
            if kind.format == "parquet":
                header, body = parquet.inspect(stream, path)[0], 0
            else:
                header, body = delimited.read_header(stream, DELIMITERS[kind.format], path)
        columns = Columns(choose_text(header, text_column, path), None)
        source = replace(source, columns=columns, header=tuple(header), body=body)
    for batch in read_piece(whole(source)):
        yield _texts(batch, path)


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
            texts = block.decode("utf-8").split("\n")[:-1]
        except UnicodeDecodeError as error:
            line += block[: error.start].count(b"\n")
            raise CorpusError(f"line {line}: invalid UTF-8", where=where, remedy="convert it to UTF-8") from error
        line += len(texts)
        yield pa.array(texts, pa.large_string())
