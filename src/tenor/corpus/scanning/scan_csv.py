"""The compiled CSV scanner: RFC 4180, quoted newlines included, any one-byte delimiter."""

# ruff: noqa: PLR0912, PLR0915 - compiled loops stay in one function: state lives in registers
from __future__ import annotations

from typing import Any

from tenor.compiled import compiled

OK, BLANK, COLUMNS, QUOTES, OPEN, LONG = range(6)  # status of a record
QUOTED, PLAIN = 0, 1  # how a record is read; PLAIN: quotes have no special meaning
TAB = 9
MAX_SPAN = 10_000  # lines of one record; in a longer record the quote counts as never closed


@compiled
def quoted_end(data: Any, at: int, delimiter: int, longest: int) -> Any:
    """The record at `at`, read according to RFC 4180.

    Returns (position after the record, number of columns, whether its quotes are valid, position of its first newline,
    start of the field with that newline). The first value is -1 if the data ends inside the record, and -2 if the
    record is too long.
    """
    size, start = data.shape[0], at
    columns, sound, newline, field, span = 1, True, -1, at, 0
    opener = at
    while at < size:
        if at == field and data[at] == 34:
            at += 1
            while True:
                while at < size and data[at] != 34:
                    if data[at] == 10:
                        if newline < 0:
                            newline, opener = at, field
                        span += 1
                    at += 1
                if span >= MAX_SPAN or (span > 0 and at - start > longest):
                    return -2, columns, sound, newline, opener
                if at + 1 >= size:
                    return -1, columns, sound, newline, opener
                if data[at + 1] != 34:
                    break
                at += 2
            at += 1
            is_end = data[at] == 13 and at + 1 < size and data[at + 1] == 10
            sound = sound and (is_end or data[at] == delimiter or data[at] == 10)
        byte = data[at]
        at += 1
        if byte == 10:
            if newline < 0:
                newline, opener = at - 1, field
            return at, columns, sound, newline, opener
        if byte == delimiter:
            columns += 1
            field = at
    return -1, columns, sound, newline, opener


@compiled
def plain_columns(data: Any, at: int, delimiter: int) -> Any:
    """(number of columns of the line at `at` if quotes have no special meaning, position of its newline or -1)."""
    columns = 1
    for i in range(at, data.shape[0]):
        if data[i] == 10:
            return columns, i
        columns += data[i] == delimiter
    return columns, -1


@compiled
def record_end(data: Any, at: int, delimiter: int, columns: int, longest: int, is_last: bool) -> Any:
    """(position after the record at `at`, how to read it). The position is -1 if that needs more data than there is,
    which is impossible if `is_last`.

    In tab-separated files, a line with the right number of columns is a row whatever its quotes, because many such
    files use quotes without meaning. But a quote that opens in the last field may contain a newline; then the next
    line has another number of columns than a row. A quote that is never closed makes only its own line invalid.
    """
    end, found, sound, newline, opener = quoted_end(data, at, delimiter, longest)
    if newline < 0:
        return -1, OPEN
    is_row = sound and found == columns
    if delimiter == TAB and not (is_row and end == newline + 1):
        count, _ = plain_columns(data, at, delimiter)
        in_last = True
        for i in range(opener, newline):
            in_last = in_last and data[i] != delimiter
        if count == columns:
            if end == -1 and in_last and not is_last:
                return -1, OPEN
            if end < 0 or not is_row or not in_last or plain_columns(data, newline + 1, delimiter)[0] == columns:
                return newline + 1, LONG if newline + 1 - at > longest else PLAIN
    if end == -1 and not is_last:
        return -1, OPEN
    if end < 0:
        return newline + 1, LONG if newline + 1 - at > longest else OPEN
    return end, LONG if end - at > longest else QUOTED


@compiled
def whole_records(
    data: Any, delimiter: int, columns: int, longest: int, is_last: bool, is_stuck: bool, ends: Any, kinds: Any
) -> Any:
    """(bytes, records) of the whole records at the front of `data`.

    Writes where each record ends into `ends`, and how it is read into `kinds`. `is_stuck` says that the first record
    is too long to wait for more data.
    """
    at, records = 0, 0
    while True:
        end, kind = record_end(data, at, delimiter, columns, longest, is_last or (is_stuck and at == 0))
        if end < 0:
            return at, records
        at = end
        ends[records], kinds[records] = end, kind
        records += 1


@compiled
def scan_field(data: Any, at: int, delimiter: int, is_quoted: bool, out: Any, to: int) -> Any:
    """Copy a field: (position of the delimiter or newline after it, end of the copy in `out`, whether it is valid)."""
    if data[at] != 34 or not is_quoted:
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
    ends: Any,  # where each record ends
    kinds: Any,  # how to read it: QUOTED or PLAIN; or why it is rejected: OPEN or LONG
    delimiter: int,
    columns: int,  # number of columns in the header
    wanted: Any,  # columns of the text, the rating and the title; -1 for none
    text: Any,
    text_offsets: Any,
    rating: Any,
    rating_offsets: Any,
    lines: Any,  # line on which each record starts, from 0
    status: Any,
    scratch: Any,  # space for any single field
) -> Any:
    """(records, rows, lines). The text and rating of each OK record are copied out in order; these are the rows."""
    at, record, row, line = 0, 0, 0, 0
    text_to, rating_to = 0, 0
    text_offsets[0] = 0
    rating_offsets[0] = 0
    while at < data.shape[0]:
        first, is_quoted = at, kinds[record] == QUOTED
        lines[record] = line
        column = 0
        sound = True
        text_size, title_size, rating_end = 0, 0, rating_to
        if data[at] == 10 or (data[at] == 13 and data[at + 1] == 10):
            while data[at] != 10:
                at += 1
            status[record] = BLANK
        elif kinds[record] == OPEN or kinds[record] == LONG:
            status[record] = kinds[record]
            at = ends[record] - 1
        else:
            while True:
                if column == wanted[0]:
                    at, to, good = scan_field(data, at, delimiter, is_quoted, text, text_to)
                    text_size = to - text_to
                elif column == wanted[2]:
                    at, title_size, good = scan_field(data, at, delimiter, is_quoted, scratch, 0)
                elif column == wanted[1]:
                    at, rating_end, good = scan_field(data, at, delimiter, is_quoted, rating, rating_to)
                else:
                    at, _, good = scan_field(data, at, delimiter, is_quoted, scratch, title_size)
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
