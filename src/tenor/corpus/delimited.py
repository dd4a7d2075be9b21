"""CSV and TSV with a header: quoted newlines and doubled quotes as RFC 4180 has them."""

from __future__ import annotations

import csv
from collections.abc import Iterator
from typing import BinaryIO

import numpy as np

from tenor.corpus.batch import Batch, Reject, make_batch, refused, string_array
from tenor.corpus.blocks import BLOCK, BOM, MAX_LINE
from tenor.corpus.columns import Columns
from tenor.corpus.scan_csv import COLUMNS, OK, QUOTES, scan_records, whole_records
from tenor.errors import CorpusError

_REASONS = {COLUMNS: "wrong number of columns", QUOTES: "text after a closing quote"}
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


def record_blocks(stream: BinaryIO, delimiter: str, size: int | None = None) -> Iterator[tuple[bytes, int]]:
    """(bytes, whole records in them) from where the stream stands, the start of a record, to `size` bytes further.

    A quote that is never closed gives its line with 0 records: it is refused, and reading goes on after it.
    """
    carry, left = b"", size
    while True:
        block = stream.read(BLOCK if left is None else min(BLOCK, left))
        left = None if left is None else left - len(block)
        data = carry + block
        if not block and data and not data.endswith(b"\n"):
            data += b"\n"
        cut, records = whole_records(np.frombuffer(data, np.uint8), ord(delimiter))
        if records:
            yield data[:cut], records
        carry = data[cut:]
        if len(carry) > MAX_LINE or (not block and carry):
            line = carry.find(b"\n") + 1
            yield carry[:line], 0
            carry = carry[line:]
        elif not block:
            return


def find_cuts(stream: BinaryIO, delimiter: str, body: int, size: int) -> list[int]:
    """Places about `size` bytes apart where records start: a quoted newline is none, so it must be read to be known."""
    stream.seek(body)
    cuts, at = [body], body
    for data, _ in record_blocks(stream, delimiter):
        if at - cuts[-1] >= size:
            cuts.append(at)
        at += len(data)
    return cuts


def read(
    stream: BinaryIO, delimiter: str, header: list[str], columns: Columns, size: int | None = None
) -> Iterator[Batch]:
    """The rows from where the stream stands, the start of a record, to `size` bytes further on."""
    scanner = _Scanner(delimiter, header, columns)
    line = 1
    for data, records in record_blocks(stream, delimiter, size):
        batch = scanner.scan(data, records, line) if records else refused(line, "quote not closed")
        yield batch
        line += batch.lines


class _Scanner:
    def __init__(self, delimiter: str, header: list[str], columns: Columns) -> None:
        self.delimiter = ord(delimiter)
        self.count = len(header)
        names = (columns.text, columns.rating, columns.title)
        self.wanted = np.array([-1 if name is None else header.index(name) for name in names])

    def scan(self, block: bytes, records: int, first_line: int) -> Batch:
        data = np.frombuffer(block, np.uint8)
        text, rating, scratch = (np.empty(len(data) + 1, np.uint8) for _ in range(3))
        text_offsets, rating_offsets = np.empty(records + 1, np.int64), np.empty(records + 1, np.int64)
        lines, status = np.empty(records, np.int64), np.empty(records, np.uint8)
        _, rows, seen = scan_records(
            data, self.delimiter, self.count, self.wanted,
            text, text_offsets, rating, rating_offsets, lines, status, scratch,
        )  # fmt: skip
        bad = np.flatnonzero(status > 1)
        rejects = [Reject(int(lines[n]) + first_line, _REASONS[status[n]]) for n in bad]
        return make_batch(
            string_array(text, text_offsets[: rows + 1]),
            string_array(rating, rating_offsets[: rows + 1]),
            lines[status == OK] + first_line,
            rejects,
            int(seen),
        )
