"""The compiled CSV scanner: RFC 4180, quoted newlines included, any one-byte delimiter."""

# ruff: noqa: PLR0912, PLR0915 - compiled loops stay in one function: state lives in registers
from __future__ import annotations

from typing import Any

from tenor.compiled import compiled

OK, BLANK, COLUMNS, QUOTES = 0, 1, 2, 3  # a record's status


@compiled
def record_end(data: Any, at: int, delimiter: int) -> int:
    """The position after the record at `at`, or -1 when the data ends inside it."""
    size = data.shape[0]
    fresh = True  # at the start of a field, where a quote opens a quoted one
    while at < size:
        byte = data[at]
        if byte == 10:
            return at + 1
        if byte == 34 and fresh:
            at += 1
            while True:
                while at < size and data[at] != 34:
                    at += 1
                if at + 1 >= size:
                    return -1
                if data[at + 1] != 34:
                    break
                at += 2
        fresh = byte == delimiter
        at += 1
    return -1


@compiled
def whole_records(data: Any, delimiter: int) -> Any:
    """(bytes, records) of the whole records at the front of data."""
    at, records = 0, 0
    while True:
        end = record_end(data, at, delimiter)
        if end < 0:
            return at, records
        at = end
        records += 1


@compiled
def scan_field(data: Any, at: int, delimiter: int, out: Any, to: int) -> Any:
    """(position of the delimiter or newline after the field, place after the copy in `out`, whether it is sound)."""
    if data[at] != 34:
        while data[at] != delimiter and data[at] != 10:
            out[to] = data[at]
            to += 1
            at += 1
        return at, to, True
    at += 1
    while True:
        if data[at] == 34:
            if data[at + 1] != 34:
                break
            at += 1
        out[to] = data[at]
        to += 1
        at += 1
    at += 1
    sound = data[at] == delimiter or data[at] == 10 or (data[at] == 13 and data[at + 1] == 10)
    while data[at] != delimiter and data[at] != 10:
        at += 1
    return at, to, sound


@compiled
def scan_records(
    data: Any,  # uint8, whole records
    delimiter: int,
    columns: int,  # how many the header names
    wanted: Any,  # the column of text, of rating, of title (-1 for none)
    text: Any,
    text_offsets: Any,
    rating: Any,
    rating_offsets: Any,
    lines: Any,  # the line on which each record starts, from 0
    status: Any,
    scratch: Any,  # room for any one field
) -> Any:
    """(records, rows, lines): rows are the OK records, text and rating copied out in order."""
    at, record, row, line = 0, 0, 0, 0
    text_to, rating_to = 0, 0
    text_offsets[0] = 0
    rating_offsets[0] = 0
    while at < data.shape[0]:
        first = at
        lines[record] = line
        column = 0
        sound = True
        text_size, title_size, rating_end = 0, 0, rating_to
        if data[at] == 10 or (data[at] == 13 and data[at + 1] == 10):
            while data[at] != 10:
                at += 1
            status[record] = BLANK
        else:
            while True:
                if column == wanted[0]:
                    at, to, good = scan_field(data, at, delimiter, text, text_to)
                    text_size = to - text_to
                elif column == wanted[2]:
                    at, title_size, good = scan_field(data, at, delimiter, scratch, 0)
                elif column == wanted[1]:
                    at, rating_end, good = scan_field(data, at, delimiter, rating, rating_to)
                else:
                    at, _, good = scan_field(data, at, delimiter, scratch, title_size)
                sound = sound and good
                column += 1
                if data[at] == 10:
                    break
                at += 1
            status[record] = OK
            if not sound:
                status[record] = QUOTES
            elif column != columns:
                status[record] = COLUMNS
            else:
                if title_size > 0:
                    for i in range(text_size):
                        text[text_to + title_size + text_size - i] = text[text_to + text_size - 1 - i]
                    text[text_to + title_size] = 32
                    text[text_to : text_to + title_size] = scratch[:title_size]
                    text_size += title_size + 1
                last = columns - 1
                if data[at - 1] == 13:
                    if wanted[1] == last and rating_end > rating_to and rating[rating_end - 1] == 13:
                        rating_end -= 1
                    elif wanted[0] == last and text_size > 0 and text[text_to + text_size - 1] == 13:
                        text_size -= 1
                text_to += text_size
                rating_to = rating_end
                row += 1
                text_offsets[row], rating_offsets[row] = text_to, rating_to
        at += 1
        record += 1
        for i in range(first, at):
            line += data[i] == 10
    return record, row, line
