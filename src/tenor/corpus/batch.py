"""What every reader yields: an Arrow record batch of (text, rating, line), and the rows that it rejects."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa

SCHEMA = pa.schema([("text", pa.large_string()), ("rating", pa.large_string()), ("line", pa.int64())])

INVALID = "invalid UTF-8"  # the reason to reject a row
_NO_LINES = np.empty(0, np.int64)


class Reject(NamedTuple):
    """A rejected row: its line, counted from 1 within the piece, and the reason."""

    line: int
    reason: str


class RawRow(NamedTuple):
    """One row as Python values: its line, counted from 1 within the piece, its text and its rating."""

    line: int
    text: bytes
    rating: bytes


@dataclass(frozen=True)
class RowBatch:
    """Some consecutive rows of a piece."""

    rows: pa.RecordBatch  # SCHEMA
    rejects: list[Reject] = field(default_factory=list)
    lines: int = 0  # lines of the file that the batch covers, blank and rejected ones included


def string_array(data: npt.NDArray[np.uint8], offsets: npt.NDArray[np.int64]) -> pa.Array:
    """An Arrow string array over bytes and offsets that compiled code wrote, without a copy."""
    return pa.LargeStringArray.from_buffers(len(offsets) - 1, pa.py_buffer(offsets), pa.py_buffer(data))


# If pandas is installed, `pa.array`, and `np.asarray` of an Arrow array, import it. That takes a fifth of a second in
# every process, so the usual path of a row uses these three functions instead.


def strings_of(values: Sequence[bytes]) -> pa.Array:
    """An Arrow string array of values in UTF-8, which are not checked."""
    offsets = np.zeros(len(values) + 1, np.int64)
    np.cumsum([len(value) for value in values], out=offsets[1:])
    return pa.LargeStringArray.from_buffers(len(values), pa.py_buffer(offsets), pa.py_buffer(b"".join(values)))


def integers_of(values: npt.NDArray[np.int64]) -> pa.Array:
    """An Arrow array over integers, without a copy."""
    return pa.Array.from_buffers(pa.int64(), len(values), [None, pa.py_buffer(np.ascontiguousarray(values, np.int64))])


def indices_of(encoded: pa.DictionaryArray) -> npt.NDArray[np.int32]:
    """The index of each value in the dictionary, for an array of at least one value and without nulls."""
    indices = encoded.indices
    return np.frombuffer(indices.buffers()[1], np.int32, len(indices), 4 * indices.offset)


def is_utf8(data: npt.NDArray[np.uint8]) -> bool:
    """Whether the bytes are valid UTF-8."""
    try:
        string_array(data, np.array([0, len(data)])).validate(full=True)
    except pa.ArrowInvalid:
        return False
    return True


def make_batch(
    text: pa.Array,
    rating: pa.Array,
    lines: npt.NDArray[np.int64],
    rejects: Sequence[Reject],
    num_lines: int,
    *,
    is_checked: bool = False,
) -> RowBatch:
    """A batch of the rows that are valid UTF-8; the others become rejects.

    Args:
        text: Large strings, one per row.
        rating: Large strings, one per row; as written in the file.
        lines: Line of each row, counted from 1 within the piece.
        rejects: Rows that are already rejected.
        num_lines: Lines of the file that the batch covers.
        is_checked: Whether the strings are known to be valid UTF-8.
    """
    rows = pa.RecordBatch.from_arrays([text, rating, integers_of(lines)], schema=SCHEMA)
    bad = [] if is_checked else sorted({*_not_utf8(text), *_not_utf8(rating)})
    if bad:
        rejects = [*rejects, *(Reject(int(lines[row]), INVALID) for row in bad)]
        keep = np.ones(len(lines), np.bool_)
        keep[bad] = False
        rows = rows.filter(pa.array(keep))
    return RowBatch(rows, sorted(rejects), num_lines)


def batch_from_rows(rows: Sequence[RawRow], rejects: Sequence[Reject] = (), *, num_lines: int) -> RowBatch:
    """A batch from Python values, for readers that need not be fast. Rows that are not valid UTF-8 become rejects."""
    texts, ratings = strings_of([row.text for row in rows]), strings_of([row.rating for row in rows])
    return make_batch(texts, ratings, np.array([row.line for row in rows], np.int64), rejects, num_lines)


def rejected_line(line: int, reason: str) -> RowBatch:
    """A batch that covers one line, which is rejected."""
    return no_rows([Reject(line, reason)], lines=1)


def no_rows(rejects: Sequence[Reject] = (), *, lines: int) -> RowBatch:
    """A batch that covers lines without any row."""
    rows = pa.RecordBatch.from_arrays([strings_of([]), strings_of([]), integers_of(_NO_LINES)], schema=SCHEMA)
    return RowBatch(rows, list(rejects), lines)


def _not_utf8(strings: pa.Array) -> list[int]:
    try:
        strings.validate(full=True)
    except pa.ArrowInvalid:
        raw = strings.cast(pa.large_binary())
        return [row for row, value in enumerate(raw) if not _valid(value.as_py())]
    return []


def _valid(value: bytes) -> bool:
    try:
        value.decode("utf-8")
    except UnicodeDecodeError:
        return False
    return True
