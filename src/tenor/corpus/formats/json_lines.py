"""JSON lines (one object per line) and JSON arrays. Compiled code reads usual lines, Python the unusual ones."""

from __future__ import annotations

import contextlib
import json
import re
from collections.abc import Iterator
from typing import BinaryIO

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from tenor.corpus.batch import Reject, RowBatch, is_utf8, make_batch, rejected_line, string_array
from tenor.corpus.columns import ColumnChooser, Columns
from tenor.corpus.files.source import Layout, Source
from tenor.corpus.files.streams import first_bytes, open_content
from tenor.corpus.formats.base import LineFormat, Range, Record
from tenor.corpus.scanning.blocks import BOM, count_lines, line_blocks
from tenor.corpus.scanning.json_array import array_lines
from tenor.corpus.scanning.json_keys import first_keys, more_keys
from tenor.corpus.scanning.json_objects import read_line
from tenor.corpus.scanning.scan_json import OK, SLOW, scan_lines
from tenor.errors import CorpusError

_ARRAY = re.compile(rb"\[\s*\{")


class JsonLines(LineFormat):
    """JSON lines, and JSON arrays of objects. An array is read as lines, one per element, and is never cut."""

    name = "json"
    title = "JSON lines, JSON arrays"
    suffixes = (".jsonl", ".ndjson", ".json")

    def looks_like(self, start: bytes) -> bool:
        return _ARRAY.match(start) is not None or _is_object(start.split(b"\n", 1)[0])

    def inspect(self, source: Source, start: bytes, choose: ColumnChooser) -> Layout:
        is_array = start.removeprefix(BOM).lstrip(b" \t\r\n").startswith(b"[")
        if is_array:
            with open_content(source) as stream:
                start = first_bytes(array_lines(stream, source.shown), source.shown)
        details = {"is_array": is_array}
        if not choose.only_unrated:  # later lines may have a rating that the first ones lack
            with contextlib.suppress(CorpusError):
                return Layout(choose(first_keys(start)), details=details)
        with open_content(source) as stream:
            keys, is_whole = more_keys(array_lines(stream, source.shown) if is_array else stream)
        columns, doubt = _choose(keys, is_whole, choose)
        return Layout(columns, details=details, doubt=doubt)

    def cut(self, source: Source, size: int) -> list[Range]:
        return [(0, None)] if source.details["is_array"] else super().cut(source, size)

    def why_not_cut(self, source: Source) -> str:
        return "a JSON array cannot be cut" if source.details["is_array"] else super().why_not_cut(source)

    def read(self, stream: BinaryIO, source: Source, start: int, end: int | None) -> Iterator[RowBatch]:
        assert source.columns is not None
        lines = array_lines(stream, source.shown) if source.details["is_array"] else stream
        return read(lines, source.columns, start, end, unlabelled=source.unlabelled)

    def read_records(
        self, stream: BinaryIO, source: Source, start: int, end: int | None
    ) -> Iterator[tuple[RowBatch, list[Record]]]:
        assert source.columns is not None
        lines = array_lines(stream, source.shown) if source.details["is_array"] else stream
        scanner, first_line = LineScanner(source.columns, source.unlabelled), 1
        for block in line_blocks(lines, start, end):
            if block is None:
                yield rejected_line(first_line, "line too long"), []
                first_line += 1
                continue
            batch, raw = scanner.scan(block, first_line), bytes(block).split(b"\n")
            yield batch, [json.loads(raw[line - first_line]) for line in batch.rows.column(2).to_pylist()]
            first_line += batch.lines


JSON = JsonLines()


def _is_object(line: bytes) -> bool:
    try:
        return isinstance(json.loads(line), dict)
    except (ValueError, RecursionError):
        return False


def _choose(keys: list[str], is_whole: bool, choose: ColumnChooser) -> tuple[Columns, CorpusError | None]:
    """The columns, and an error if they are doubtful.

    Lines may have different keys. So a column that the caller has named is accepted even if no line with it was seen,
    but it is doubtful if all lines were seen.
    """
    try:
        return choose(keys), None
    except CorpusError as error:
        if not choose.with_rating:
            raise
        return choose(dict.fromkeys([*keys, *choose.named()])), error if is_whole and keys else None


def read(
    stream: BinaryIO, columns: Columns, start: int = 0, end: int | None = None, *, unlabelled: bool = False
) -> Iterator[RowBatch]:
    """The rows of the lines that begin in [start, end); `unlabelled` keeps those without a rating."""
    scanner = LineScanner(columns, unlabelled)
    first_line = 1
    for block in line_blocks(stream, start, end):
        batch = rejected_line(first_line, "line too long") if block is None else scanner.scan(block, first_line)
        yield batch
        first_line += batch.lines


class LineScanner:
    """Turns blocks of whole lines into batches."""

    def __init__(self, columns: Columns, unlabelled: bool = False) -> None:
        self.columns, self.unlabelled = columns, unlabelled
        names = [name.encode() for name in (columns.text, columns.rating or "", columns.title or "")]
        self._keys = np.frombuffer(b"".join(names) or b"\0", np.uint8)
        self._ends = np.cumsum([len(name) for name in names])

    def scan(self, block: memoryview, first_line: int) -> RowBatch:
        data = np.frombuffer(block, np.uint8)
        lines = count_lines(data)
        text, rating = np.empty(len(data), np.uint8), np.empty(len(data), np.uint8)
        text_offsets, rating_offsets = np.empty(lines + 1, np.int64), np.empty(lines + 1, np.int64)
        starts, status = np.empty(lines, np.int64), np.empty(lines, np.uint8)
        rows = 0
        if is_utf8(data):
            found = (text, text_offsets, rating, rating_offsets)
            _, rows = scan_lines(data, self._keys, self._ends, *found, starts, status)
        else:  # Python reads every line
            starts[0], starts[1:], status[:] = 0, np.flatnonzero(data == 10)[:-1] + 1, SLOW
            text_offsets[0] = rating_offsets[0] = 0
        texts, ratings = string_array(text, text_offsets[: rows + 1]), string_array(rating, rating_offsets[: rows + 1])
        numbers = np.flatnonzero(status == OK) + first_line
        slow = np.flatnonzero(status == SLOW)
        if not len(slow):
            return make_batch(texts, ratings, numbers, [], lines, is_checked=True)
        ends = np.append(starts[1:], len(data))
        pairs = ((int(n) + first_line, bytes(block[starts[n] : ends[n]])) for n in slow)
        left = [(number, line) for number, line in pairs if line.strip(b" \t\r\n")]
        return self._with_slow(texts, ratings, numbers, left, lines)

    def _with_slow(
        self,
        texts: pa.Array,
        ratings: pa.Array,
        numbers: npt.NDArray[np.int64],
        slow: list[tuple[int, bytes]],
        num_lines: int,
    ) -> RowBatch:
        """The batch with the rows that Python reads from the slow lines, in the order of the lines."""
        rejects, found = [], []
        for number, line in slow:
            row = read_line(line, self.columns, self.unlabelled)
            if isinstance(row, str):
                rejects.append(Reject(number, row))
            else:
                found.append((number, *row))
        more = [pa.array([row[i] for row in found], pa.large_string()) for i in (1, 2)]
        lines = np.concatenate([numbers, np.array([row[0] for row in found], np.int64)])
        order = np.argsort(lines)  # no two are equal
        texts, ratings = (
            pa.concat_arrays(both).take(pa.array(order)) for both in ([texts, more[0]], [ratings, more[1]])
        )
        return make_batch(texts, ratings, lines[order], rejects, num_lines, is_checked=True)
