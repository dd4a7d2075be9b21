"""Plain text with one review per line, without labels: for prediction only."""

from __future__ import annotations

from collections.abc import Iterator
from typing import BinaryIO

import pyarrow as pa

from tenor.corpus.batch import INVALID, strings_of
from tenor.corpus.files.source import Source
from tenor.corpus.formats.base import BadLine, LineFormat
from tenor.corpus.scanning.blocks import line_blocks


class PlainText(LineFormat):
    name = "text"
    title = "plain text"
    has_columns = False
    has_labels = False

    def read_texts(self, stream: BinaryIO, source: Source, start: int, end: int | None) -> Iterator[pa.Array]:
        return read(stream, start, end)


TEXT = PlainText()


def read(stream: BinaryIO, start: int = 0, end: int | None = None) -> Iterator[pa.Array]:
    """The lines that begin in [start, end), blank ones included."""
    line = 1
    for block in line_blocks(stream, start, end):
        if block is None:
            raise BadLine(line, "is too long", "give one review per line")
        try:
            str(block, "utf-8")
        except UnicodeDecodeError as error:
            line += bytes(block[: error.start]).count(b"\n")
            raise BadLine(line, INVALID, "give its --encoding, or convert it to UTF-8") from error
        texts = bytes(block).split(b"\n")[:-1]
        line += len(texts)
        yield strings_of(texts)
