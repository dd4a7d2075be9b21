"""What every reader yields: an Arrow record batch of (text, rating, line) and the rows that had to be refused."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa

SCHEMA = pa.schema([("text", pa.large_string()), ("rating", pa.large_string()), ("line", pa.int64())])


class Reject(NamedTuple):
    """A refused row: its line (counted from 1 within what was read) and why."""

    line: int
    reason: str


@dataclass(frozen=True)
class Batch:
    rows: pa.RecordBatch  # SCHEMA
    rejects: list[Reject] = field(default_factory=list)
    lines: int = 0  # how many lines of the file it stands for


def string_array(data: npt.NDArray[np.uint8], offsets: npt.NDArray[np.int64]) -> pa.Array:
    """An Arrow string array over bytes and offsets that compiled code has written, without a copy."""
    return pa.LargeStringArray.from_buffers(len(offsets) - 1, pa.py_buffer(offsets), pa.py_buffer(data))


def is_utf8(data: npt.NDArray[np.uint8]) -> bool:
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
    spanned: int,
    *,
    is_checked: bool = False,
) -> Batch:
    """A batch of rows whose text is valid UTF-8, which may be known already; the others become rejects."""
    rows = pa.RecordBatch.from_arrays([text, rating, pa.array(lines)], schema=SCHEMA)
    bad = [] if is_checked else sorted({*_not_utf8(text), *_not_utf8(rating)})
    if bad:
        rejects = [*rejects, *(Reject(int(lines[row]), "invalid UTF-8") for row in bad)]
        keep = np.ones(len(lines), np.bool_)
        keep[bad] = False
        rows = rows.filter(pa.array(keep))
    return Batch(rows, sorted(rejects), spanned)


def refused(line: int, reason: str) -> Batch:
    """A batch that is one refused line."""
    return no_rows([Reject(line, reason)], lines=1)


def no_rows(rejects: Sequence[Reject] = (), *, lines: int) -> Batch:
    """A batch of lines that hold none."""
    return Batch(pa.RecordBatch.from_pylist([], schema=SCHEMA), list(rejects), lines)


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
