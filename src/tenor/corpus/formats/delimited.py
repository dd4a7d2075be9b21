"""CSV and TSV with a header; quoted newlines and doubled quotes follow RFC 4180."""

from __future__ import annotations

import csv
import io
import itertools
from collections.abc import Callable, Iterator
from typing import BinaryIO, NamedTuple

import numpy as np
from numpy.typing import NDArray

from tenor.corpus.batch import Reject, RowBatch, make_batch, no_rows, rejected_line, string_array
from tenor.corpus.columns import AUTO, ColumnChooser, Columns
from tenor.corpus.files.source import Layout, Source
from tenor.corpus.files.streams import open_content
from tenor.corpus.formats.base import NOT_PLAIN, Format, Range, Record, can_cut
from tenor.corpus.scanning.blocks import BLOCK, BOM, MAX_LINE, count_lines
from tenor.corpus.scanning.scan_csv import BLANK, COLUMNS, LONG, OK, OPEN, QUOTES, scan_records, whole_records
from tenor.errors import CorpusError

_REASONS = {
    COLUMNS: "wrong number of columns",
    QUOTES: "text after a closing quote",
    OPEN: "quote not closed",
    LONG: "line too long",
}
_MAX_HEADER = 1 << 20


class Delimited(Format):
    """Records with columns between delimiters.

    Args:
        name: The value of `--format`.
        title: The name in messages.
        delimiters: The delimiters to try on the header, in this order.
    """

    def __init__(self, name: str, title: str, delimiters: str) -> None:
        self.name, self.title, self.suffixes, self.delimiters = name, title, (f".{name}",), delimiters

    def inspect(self, source: Source, start: bytes, choose: ColumnChooser) -> Layout:
        wanted = choose.wanted.delimiter
        with open_content(source) as stream:
            header = read_header(stream, self.delimiters if wanted == AUTO else wanted, choose, source.shown)
        details = {"delimiter": header.delimiter, "header": header.names}
        return Layout(header.columns, header.body, details)

    def cut(self, source: Source, size: int) -> list[Range]:
        if not can_cut(source, size):
            return super().cut(source, size)
        with open_content(source) as stream:
            cuts = find_cuts(stream, source.details["delimiter"], len(source.details["header"]), source.body, size)
        return list(itertools.pairwise([*cuts, source.size]))

    def why_not_cut(self, source: Source) -> str:
        return "" if source.kind.is_plain else NOT_PLAIN

    def read(self, stream: BinaryIO, source: Source, start: int, end: int | None) -> Iterator[RowBatch]:
        assert source.columns is not None
        if source.kind.is_plain:
            stream.seek(start)
        else:
            stream.read(start)
        size, is_first = None if end is None else end - start, start == source.body
        delimiter, header = source.details["delimiter"], source.details["header"]
        return read(stream, delimiter, header, source.columns, size, is_first)

    def read_records(
        self, stream: BinaryIO, source: Source, start: int, end: int | None
    ) -> Iterator[tuple[RowBatch, list[Record]]]:
        assert source.columns is not None
        stream.seek(start) if source.kind.is_plain else stream.read(start)
        delimiter, header = source.details["delimiter"], source.details["header"]
        scanner, line = _RecordScanner(delimiter, header, source.columns), 1
        if start == source.body:
            yield no_rows(lines=1), []
            line = 2
        for block in record_blocks(stream, delimiter, len(header), None if end is None else end - start):
            batch = rejected_line(line, _REASONS[LONG]) if block.skipped else scanner.scan(block, line)
            wanted = set(batch.rows.column(2).to_pylist())
            yield batch, [_record(text, header, delimiter) for at, text in _texts(block, line) if at in wanted]
            line += batch.lines


def _texts(block: Records, line: int) -> Iterator[tuple[int, str]]:
    """(line, text) of each record."""
    for first, last in itertools.pairwise([0, *block.ends.tolist()]):
        text = block.data[first:last].decode("utf-8", "replace")
        yield line, text
        line += text.count("\n")


def _record(text: str, header: list[str], delimiter: str) -> Record:
    values = next(csv.reader(io.StringIO(text, newline=""), delimiter=delimiter))
    return dict(zip(header, values, strict=True))


CSV = Delimited("csv", "CSV", ",;\t|")
TSV = Delimited("tsv", "TSV", "\t")


class Header(NamedTuple):
    delimiter: str
    names: list[str]
    body: int  # where the first record starts
    columns: Columns


def read_header(stream: BinaryIO, delimiters: str, choose: Callable[[list[str]], Columns], where: str) -> Header:
    """The header, split at the first of the delimiters that gives columns which `choose` accepts."""
    line, body = _first_line(stream, where)
    failures: list[tuple[int, CorpusError]] = []  # number of columns, error
    for delimiter in delimiters:
        try:
            names = next(csv.reader([line], delimiter=delimiter), [])
            return Header(delimiter, names, body, choose(names))
        except csv.Error as error:
            failures.append((0, _no_header(error, where)))
        except CorpusError as error:
            failures.append((len(names), error))
    raise max(failures, key=lambda failure: failure[0])[1]  # of the delimiter that gives the most columns


def _first_line(stream: BinaryIO, where: str) -> tuple[str, int]:
    """The first line, and where the second one starts."""
    start = stream.read(_MAX_HEADER)
    bom = len(BOM) if start.startswith(BOM) else 0
    line, newline, _ = start[bom:].partition(b"\n")
    try:
        return line.decode("utf-8").rstrip("\r"), bom + len(line) + len(newline)
    except UnicodeDecodeError as error:
        raise _no_header(error, where) from error


def _no_header(error: Exception, where: str) -> CorpusError:
    remedy = "the first line must name the columns; check --encoding and --delimiter"
    return CorpusError(f"the first line is not a header: {error}", where=where, remedy=remedy)


class Records(NamedTuple):
    """Some whole records; or, without any, the size of a line that is too long to be kept in memory."""

    data: bytes
    ends: NDArray[np.int64]  # where each record ends
    kinds: NDArray[np.uint8]  # how each record is read: see scan_csv
    skipped: int = 0  # bytes of the overlong line


def record_blocks(stream: BinaryIO, delimiter: str, columns: int, size: int | None = None) -> Iterator[Records]:
    """The records in the next `size` bytes of a stream that stands at the start of a record."""
    rest = _ByteRange(stream, size)
    carry = b""
    while True:
        block = rest.read()
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
            skipped, carry = rest.skip_line()
            yield Records(b"", ends[:0], kinds[:0], len(data) + skipped)


class _ByteRange:
    """The rest of a stream, or of its next `size` bytes."""

    def __init__(self, stream: BinaryIO, size: int | None) -> None:
        self.stream, self.size = stream, size

    def read(self) -> bytes:
        block = self.stream.read(BLOCK if self.size is None else min(BLOCK, self.size))
        if self.size is not None:
            self.size -= len(block)
        return block

    def skip_line(self) -> tuple[int, bytes]:
        """Skip the rest of the line: the number of bytes skipped, and the bytes already read after the line."""
        skipped = 0
        while block := self.read():
            end = block.find(b"\n") + 1
            skipped += end or len(block)
            if end:
                return skipped, block[end:]
        return skipped, b""


def find_cuts(stream: BinaryIO, delimiter: str, columns: int, body: int, size: int) -> list[int]:
    """Positions about `size` bytes apart where records start.

    The file is read to find them, because a quoted newline does not end a record.
    """
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
) -> Iterator[RowBatch]:
    """The rows in the next `size` bytes of a stream that stands at the start of a record.

    `is_first` says that the header comes just before; it counts as a line.
    """
    scanner = _RecordScanner(delimiter, header, columns)
    line = 1
    if is_first:
        yield no_rows(lines=1)
        line = 2
    for block in record_blocks(stream, delimiter, len(header), size):
        batch = rejected_line(line, _REASONS[LONG]) if block.skipped else scanner.scan(block, line)
        yield batch
        line += batch.lines


class _RecordScanner:
    def __init__(self, delimiter: str, header: list[str], columns: Columns) -> None:
        self.delimiter = ord(delimiter)
        self.count = len(header)
        names = (columns.text, columns.rating, columns.title)
        self.wanted = np.array([-1 if name is None else header.index(name) for name in names])

    def scan(self, block: Records, first_line: int) -> RowBatch:
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
        # A rejected record may contain rows that a wrong quote has swallowed, so each of its lines is a reject.
        rejected = ((n, line) for n in np.flatnonzero(status > BLANK) for line in range(lines[n], lines[n + 1]))
        return make_batch(
            string_array(text, text_offsets[: rows + 1]),
            string_array(rating, rating_offsets[: rows + 1]),
            lines[:-1][status == OK],
            [Reject(line, _REASONS[status[n]]) for n, line in rejected],
            int(seen),
        )
