"""JSON lines: one object a line. Compiled code reads the usual lines, Python judges the unusual ones."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any, BinaryIO

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from tenor.corpus.batch import Batch, Reject, is_utf8, make_batch, refused, string_array
from tenor.corpus.blocks import count_lines, line_blocks
from tenor.corpus.columns import Columns
from tenor.corpus.scan_json import OK, SLOW, scan_lines


def read(stream: BinaryIO, columns: Columns, start: int = 0, end: int | None = None) -> Iterator[Batch]:
    """The rows of the lines that begin in [start, end)."""
    scanner = Scanner(columns)
    first_line = 1
    for block in line_blocks(stream, start, end):
        batch = refused(first_line, "line too long") if block is None else scanner.scan(block, first_line)
        yield batch
        first_line += batch.lines


class Scanner:
    """Turns blocks of whole lines into batches."""

    def __init__(self, columns: Columns) -> None:
        self.columns = columns
        names = [name.encode() for name in (columns.text, columns.rating or "", columns.title or "")]
        self._keys = np.frombuffer(b"".join(names) or b"\0", np.uint8)
        self._ends = np.cumsum([len(name) for name in names])

    def scan(self, block: memoryview, first_line: int) -> Batch:
        data = np.frombuffer(block, np.uint8)
        lines = count_lines(data)
        text, rating = np.empty(len(data), np.uint8), np.empty(len(data), np.uint8)
        text_offsets, rating_offsets = np.empty(lines + 1, np.int64), np.empty(lines + 1, np.int64)
        starts, status = np.empty(lines, np.int64), np.empty(lines, np.uint8)
        rows = 0
        if is_utf8(data):
            found = (text, text_offsets, rating, rating_offsets)
            _, rows = scan_lines(data, self._keys, self._ends, *found, starts, status)
        else:  # Python judges every line
            starts[0], starts[1:], status[:] = 0, np.flatnonzero(data == 10)[:-1] + 1, SLOW
            text_offsets[0] = rating_offsets[0] = 0
        texts, ratings = string_array(text, text_offsets[: rows + 1]), string_array(rating, rating_offsets[: rows + 1])
        numbers = np.flatnonzero(status == OK) + first_line
        slow = np.flatnonzero(status == SLOW)
        if not len(slow):
            return make_batch(texts, ratings, numbers, [], lines, is_checked=True)
        ends = np.append(starts[1:], len(data))
        pairs = ((int(n) + first_line, bytes(block[starts[n] : ends[n]])) for n in slow)
        told = [(number, line) for number, line in pairs if line.strip(b" \t\r\n")]
        return self._with_slow(texts, ratings, numbers, told, lines)

    def _with_slow(
        self,
        texts: pa.Array,
        ratings: pa.Array,
        numbers: npt.NDArray[np.int64],
        slow: list[tuple[int, bytes]],
        spanned: int,
    ) -> Batch:
        """The batch with the rows that Python finds among the slow lines, each at its place."""
        rejects, found = [], []
        for number, line in slow:
            row = read_line(line, self.columns)
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
        return make_batch(texts, ratings, lines[order], rejects, spanned, is_checked=True)


class _Raw(str):
    """A number or a constant as it was written."""


class _Pairs(list[tuple[str, Any]]):
    """An object as its pairs, so that a repeated key is seen."""


_decoder = json.JSONDecoder(object_pairs_hook=_Pairs, parse_int=_Raw, parse_float=_Raw, parse_constant=_Raw)


def parse_object(line: bytes) -> list[tuple[str, Any]] | str:
    """The pairs of the object of one line, or why it is none."""
    try:
        value = _decoder.decode(line.decode("utf-8"))
    except UnicodeDecodeError:
        return "invalid UTF-8"
    except RecursionError:
        return "nested too deeply"
    except ValueError:
        return "invalid JSON"
    return value if isinstance(value, _Pairs) else "not a JSON object"


def read_line(line: bytes, columns: Columns) -> tuple[str, str] | str:
    """(text, rating) of one line as Python reads it, or the reason to refuse it."""
    pairs = parse_object(line)
    if isinstance(pairs, str):
        return pairs
    wanted = [name for name in (columns.text, columns.rating, columns.title) if name]
    named = [(key, value) for key, value in pairs if key in wanted]
    values = dict(named)
    if len(values) != len(named):
        return "repeated key"
    rating = values.get(columns.rating) if columns.rating else ""
    return _choose(values.get(columns.text), rating, values.get(columns.title or ""))


def _choose(text: Any, rating: Any, title: Any) -> tuple[str, str] | str:
    if type(text) is not str:
        return "missing text" if text is None else "text is not a string"
    if rating is None:
        return "missing rating"
    if not isinstance(rating, str) or (isinstance(rating, _Raw) and not rating.lstrip("-")[:1].isdigit()):
        return "bad rating"
    text = f"{title} {text}" if type(title) is str else text
    try:
        (text + rating).encode()
    except UnicodeEncodeError:
        return "lone surrogate"
    return text, str(rating)
