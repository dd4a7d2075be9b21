"""CSV and TSV with a header: quoted newlines and doubled quotes as RFC 4180 has them."""

from __future__ import annotations

import csv
from collections.abc import Iterator
from typing import BinaryIO, NamedTuple

import numpy as np
from numpy.typing import NDArray

from tenor.corpus.batch import Batch, Reject, make_batch, no_rows, refused, string_array
from tenor.corpus.blocks import BLOCK, BOM, MAX_LINE, count_lines
from tenor.corpus.columns import Columns
from tenor.corpus.scan_csv import BLANK, COLUMNS, LONG, OK, OPEN, QUOTES, scan_records, whole_records
from tenor.errors import CorpusError

_REASONS = {
    COLUMNS: "wrong number of columns",
    QUOTES: "text after a closing quote",
    OPEN: "quote not closed",
    LONG: "line too long",
}
_MAX_HEADER = 1 << 20


def read_header(stream: BinaryIO, delimiter: str, where: str) -> tuple[list[str], int]:
    """The column names, and where the first record starts."""
    start = stream.read(_MAX_HEADER)
    bom = len(BOM) if start.startswith(BOM) else 0
    line, newline, _ = start[bom:].partition(b"\n")
    try:
        names = next(csv.reader([line.decode("utf-8").rstrip("\r")], delimiter=delimiter), [])
    except (UnicodeDecodeError, csv.Error) as error:
        raise CorpusError(f"the first line is no header: {error}", where=where) from error
    return names, bom + len(line) + len(newline)


class Records(NamedTuple):
    """Bytes of whole records, where each ends and how it is read; or nothing but the size of a line that is too long
    to be held."""

    data: bytes
    ends: NDArray[np.int64]
    kinds: NDArray[np.uint8]
    skipped: int = 0


def record_blocks(stream: BinaryIO, delimiter: str, columns: int, size: int | None = None) -> Iterator[Records]:
    """The records from where the stream stands, the start of one, to `size` bytes further."""
    left = _Left(stream, size)
    carry = b""
    while True:
        block = left.read()
        data = carry + block
        if not block and data and not data.endswith(b"\n"):
            data += b"\n"
        array, is_stuck = np.frombuffer(data, np.uint8), len(data) > MAX_LINE + BLOCK
        lines = count_lines(array)
        ends, kinds = np.empty(lines, np.int64), np.empty(lines, np.uint8)
        cut, records = whole_records(array, ord(delimiter), columns, MAX_LINE, not block, is_stuck, ends, kinds)
        if records:
            yield Records(data[:cut], ends[:records], kinds[:records])
        carry = data[cut:]
        if not block:
            return
        if is_stuck and not records:
            skipped, carry = left.skip_line()
            yield Records(b"", ends[:0], kinds[:0], len(data) + skipped)


class _Left:
    """What is left of the stream, or of its next `size` bytes."""

    def __init__(self, stream: BinaryIO, size: int | None) -> None:
        self.stream, self.size = stream, size

    def read(self) -> bytes:
        block = self.stream.read(BLOCK if self.size is None else min(BLOCK, self.size))
        if self.size is not None:
            self.size -= len(block)
        return block

    def skip_line(self) -> tuple[int, bytes]:
        """Go on to the end of the line: how many bytes that was, and what was read after it."""
        skipped = 0
        while block := self.read():
            end = block.find(b"\n") + 1
            skipped += end or len(block)
            if end:
                return skipped, block[end:]
        return skipped, b""


def find_cuts(stream: BinaryIO, delimiter: str, columns: int, body: int, size: int) -> list[int]:
    """Places about `size` bytes apart where records start: a quoted newline is none, so it must be read to be known."""
    stream.seek(body)
    cuts, at = [body], body
    for block in record_blocks(stream, delimiter, columns):
        if at - cuts[-1] >= size:
            cuts.append(at)
        at += len(block.data) + block.skipped
    return cuts


def read(
    stream: BinaryIO,
    delimiter: str,
    header: list[str],
    columns: Columns,
    size: int | None = None,
    is_first: bool = True,
) -> Iterator[Batch]:
    """The rows from where the stream stands, the start of a record, to `size` bytes further on. What comes first in a
    file stands behind the header, which counts as a line."""
    scanner = _Scanner(delimiter, header, columns)
    line = 1
    if is_first:
        yield no_rows(lines=1)
        line = 2
    for block in record_blocks(stream, delimiter, len(header), size):
        batch = refused(line, _REASONS[LONG]) if block.skipped else scanner.scan(block, line)
        yield batch
        line += batch.lines


class _Scanner:
    def __init__(self, delimiter: str, header: list[str], columns: Columns) -> None:
        self.delimiter = ord(delimiter)
        self.count = len(header)
        names = (columns.text, columns.rating, columns.title)
        self.wanted = np.array([-1 if name is None else header.index(name) for name in names])

    def scan(self, block: Records, first_line: int) -> Batch:
        data, records = np.frombuffer(block.data, np.uint8), len(block.ends)
        text, rating, scratch = (np.empty(len(data) + 1, np.uint8) for _ in range(3))
        text_offsets, rating_offsets = np.empty(records + 1, np.int64), np.empty(records + 1, np.int64)
        lines, status = np.empty(records + 1, np.int64), np.empty(records, np.uint8)
        _, rows, seen = scan_records(
            data, block.ends, block.kinds, self.delimiter, self.count, self.wanted,
            text, text_offsets, rating, rating_offsets, lines, status, scratch,
        )  # fmt: skip
        lines[-1] = seen
        lines += first_line
        # A refused record may have swallowed rows: each of its lines is told.
        refusals = ((n, line) for n in np.flatnonzero(status > BLANK) for line in range(lines[n], lines[n + 1]))
        return make_batch(
            string_array(text, text_offsets[: rows + 1]),
            string_array(rating, rating_offsets[: rows + 1]),
            lines[:-1][status == OK],
            [Reject(line, _REASONS[status[n]]) for n, line in refusals],
            int(seen),
        )
