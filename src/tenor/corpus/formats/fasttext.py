"""fastText lines: `__label__X the text`."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, BinaryIO

import numpy as np
import numpy.typing as npt

from tenor.compiled import compiled
from tenor.corpus.batch import Reject, RowBatch, make_batch, rejected_line, string_array
from tenor.corpus.files.source import Source
from tenor.corpus.formats.base import LineFormat
from tenor.corpus.scanning.blocks import count_lines, line_blocks

PREFIX = b"__label__"
_PREFIX = np.frombuffer(PREFIX, np.uint8)
_OK, _BLANK, _NO_LABEL, _SEVERAL = 0, 1, 2, 3
_REASONS = {_NO_LABEL: "no label", _SEVERAL: "several labels"}


class FastText(LineFormat):
    name = "fasttext"
    title = "fastText lines"
    suffixes = (".ft",)
    inner_suffixes = (".ft",)  # as in train.ft.txt
    magic = PREFIX
    has_columns = False

    def read(self, stream: BinaryIO, source: Source, start: int, end: int | None) -> Iterator[RowBatch]:
        return read(stream, start, end, unlabelled=source.unlabelled)


FASTTEXT = FastText()


def read(stream: BinaryIO, start: int = 0, end: int | None = None, *, unlabelled: bool = False) -> Iterator[RowBatch]:
    """The rows of the lines that begin in [start, end); `unlabelled` keeps those without a label."""
    first_line = 1
    for block in line_blocks(stream, start, end):
        if block is None:
            yield rejected_line(first_line, "line too long")
            first_line += 1
        else:
            batch = _scan(np.frombuffer(block, np.uint8), first_line, unlabelled)
            yield batch
            first_line += batch.lines


def _scan(data: npt.NDArray[np.uint8], first_line: int, unlabelled: bool) -> RowBatch:
    lines = count_lines(data)
    text, rating = np.empty(len(data), np.uint8), np.empty(len(data), np.uint8)
    text_offsets, rating_offsets = np.zeros(lines + 1, np.int64), np.zeros(lines + 1, np.int64)
    status = np.empty(lines, np.uint8)
    rows = scan_lines(data, unlabelled, text, text_offsets, rating, rating_offsets, status)
    rejects = [Reject(int(n) + first_line, _REASONS[status[n]]) for n in np.flatnonzero(status > _BLANK)]
    return make_batch(
        string_array(text, text_offsets[: rows + 1]),
        string_array(rating, rating_offsets[: rows + 1]),
        np.flatnonzero(status == _OK) + first_line,
        rejects,
        lines,
    )


@compiled
def has_prefix(data: Any, at: int) -> bool:
    """Whether data[at:] starts with the prefix."""
    for i in range(_PREFIX.shape[0]):  # noqa: SIM110 - compiled
        if data[at + i] != _PREFIX[i]:  # stops at a newline at the latest: the prefix has none
            return False
    return True


@compiled
def has_label(data: Any, at: int, end: int) -> bool:
    """Whether a word of data[at:end] starts with the prefix."""
    starts_word = True
    for i in range(at, end):
        if starts_word and has_prefix(data, i):
            return True
        starts_word = data[i] == 32 or data[i] == 9
    return False


@compiled
def scan_lines(
    data: Any, unlabelled: bool, text: Any, text_offsets: Any, rating: Any, rating_offsets: Any, status: Any
) -> int:
    """Copy out the text and the rating of each valid line, and set the status of every line; the number of rows.

    If `unlabelled`, lines without any label are valid and have an empty rating.
    """
    at, row, text_to, rating_to = 0, 0, 0, 0
    for line in range(status.shape[0]):
        end = at
        while data[end] != 10:
            end += 1
        while data[at] == 32 or data[at] == 9 or data[at] == 13:
            at += 1
        if at >= end:
            status[line] = _BLANK
        elif not unlabelled and not has_prefix(data, at):
            status[line] = _NO_LABEL
        else:
            to = rating_to
            is_labelled = has_prefix(data, at)
            if is_labelled:
                at += _PREFIX.shape[0]
            while is_labelled and at < end and data[at] != 32 and data[at] != 9 and data[at] != 13:
                rating[to] = data[at]
                to += 1
                at += 1
            while at < end and (data[at] == 32 or data[at] == 9):
                at += 1
            if at < end and has_prefix(data, at):
                status[line] = _SEVERAL
            elif to == rating_to and (not unlabelled or has_label(data, at, end)):
                status[line] = _NO_LABEL
            else:
                status[line] = _OK
                text[text_to : text_to + end - at] = data[at:end]
                text_to += end - at
                rating_to = to
                row += 1
                text_offsets[row], rating_offsets[row] = text_to, rating_to
        at = end + 1
    return row
