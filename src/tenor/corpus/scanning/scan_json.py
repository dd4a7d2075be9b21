"""The compiled scanner of JSON lines: checks the JSON of each line and copies out the wanted fields.

It accepts a line only if it is one well-formed object. An unusual line (deep nesting, escapes in keys, a bad escape, a
repeated key, a value of another type) gets the status SLOW, and Python reads it. The caller makes sure that the bytes
are valid UTF-8.
"""

# ruff: noqa: PLR0911, PLR0912, PLR0915 - compiled loops stay in one function: a call could not return early
from __future__ import annotations

from typing import Any

import numpy as np

from tenor.compiled import compiled, inlined
from tenor.corpus.scanning.wide import WIDE, copy_bytes, count_zeros, string_mask

OK, BLANK, SLOW = 0, 1, 2  # status of a line
FIELDS = 3  # text, rating, title
_MAX_DEPTH = 60


@inlined
def skip_space(data: Any, at: Any) -> Any:
    """The position of the next byte that is not white space."""
    while data[at] == 32 or data[at] == 9 or data[at] == 13:
        at += 1
    return at


@inlined
def hex4(data: Any, at: Any) -> Any:
    """The value of the four hexadecimal digits at `at`, or -1."""
    value = np.int64(0)
    for i in range(4):
        byte = np.int64(data[at + i])
        if 48 <= byte <= 57:
            digit = byte - 48
        elif 97 <= (byte | 32) <= 102:
            digit = (byte | 32) - 87
        else:
            return -1
        value = value * 16 + digit
    return value


@inlined
def skip_string(data: Any, at: Any) -> Any:
    """(position of the closing quote or -1, whether there are escapes) of the string whose content starts at `at`."""
    escaped = False
    while True:
        while at + WIDE <= data.shape[0]:
            step = count_zeros(string_mask(data, at))
            at += step
            if step < WIDE:
                break
        byte = data[at]
        if byte == 34:
            return at, escaped
        if byte < 32:
            return -1, escaped
        if byte == 92:
            escaped = True
            at += 1
            byte = data[at]
            if byte == 117:
                if hex4(data, at + 1) < 0:
                    return -1, escaped
            elif byte not in (34, 47, 92, 98, 102, 110, 114, 116):
                return -1, escaped
        at += 1


@inlined
def skip_number(data: Any, at: Any) -> Any:
    """The position after the JSON number at `at`, or -1."""
    if data[at] == 45:
        at += 1
    if data[at] == 48:
        at += 1
    elif 49 <= data[at] <= 57:
        while 48 <= data[at] <= 57:
            at += 1
    else:
        return -1
    if data[at] == 46:
        at += 1
        first = at
        while 48 <= data[at] <= 57:
            at += 1
        if at == first:
            return -1
    if (data[at] | 32) == 101:
        at += 1
        if data[at] == 43 or data[at] == 45:
            at += 1
        first = at
        while 48 <= data[at] <= 57:
            at += 1
        if at == first:
            return -1
    return at


@inlined
def skip_word(data: Any, at: Any) -> Any:
    """The position after true, false or null at `at`, or -1."""
    if data[at] == 116 and data[at + 1] == 114 and data[at + 2] == 117 and data[at + 3] == 101:
        return at + 4
    if data[at] == 110 and data[at + 1] == 117 and data[at + 2] == 108 and data[at + 3] == 108:
        return at + 4
    if data[at] == 102 and data[at + 1] == 97 and data[at + 2] == 108 and data[at + 3] == 115 and data[at + 4] == 101:
        return at + 5
    return -1


@compiled
def skip_nested(data: Any, at: Any) -> Any:
    """The position after the array or object at `at`, or -1 if it is malformed or nested too deeply."""
    stack = np.uint64(0)  # one bit per level: 1 inside an object, 0 inside an array
    one = np.uint64(1)
    depth = 0
    expect_value = True
    while True:
        at = skip_space(data, at)
        byte = data[at]
        if expect_value:
            if byte in (91, 123):
                if depth == _MAX_DEPTH:
                    return -1
                stack = (stack << one) | (one if byte == 123 else np.uint64(0))
                depth += 1
                at = skip_space(data, at + 1)
                if data[at] == (125 if byte == 123 else 93):
                    expect_value = False
                    continue
                if byte == 91:
                    continue
            elif byte == 34:
                at, _ = skip_string(data, at + 1)
                if at < 0:
                    return -1
                at += 1
                expect_value = False
                continue
            else:
                after = skip_word(data, at) if byte > 57 else skip_number(data, at)
                if after < 0:
                    return -1
                at = after
                expect_value = False
                continue
        elif byte == 44:
            at = skip_space(data, at + 1)
            expect_value = True
            if stack & one == np.uint64(0):
                continue
        elif byte == (125 if stack & one == one else 93):
            at += 1
            stack >>= one
            depth -= 1
            if depth == 0:
                return at
            continue
        else:
            return -1
        # Inside an object, a key comes before the next value.
        if data[at] != 34:
            return -1
        at, _ = skip_string(data, at + 1)
        if at < 0:
            return -1
        at = skip_space(data, at + 1)
        if data[at] != 58:
            return -1
        at += 1
        expect_value = True


@inlined
def match_key(data: Any, first: int, last: int, keys: Any, key_ends: Any) -> Any:
    """The number of the wanted key that equals data[first:last], or -1."""
    begin = 0
    for wanted in range(key_ends.shape[0]):
        size = key_ends[wanted] - begin
        if size == last - first and size > 0:
            same = True
            for i in range(size):
                if data[first + i] != keys[begin + i]:
                    same = False
                    break
            if same:
                return wanted
        begin = key_ends[wanted]
    return -1


@inlined
def unescape(data: Any, at: Any, end: int, out: Any, to: int) -> Any:
    """Copy the content of a JSON string and resolve its escapes; the end of the copy, or -1 for a bad escape."""
    while at < end:
        if at + WIDE <= data.shape[0]:
            step = min(count_zeros(string_mask(data, at)), end - at)
            copy_bytes(data, at, out, to, step)
            at += step
            to += step
            if step == WIDE or at == end:
                continue
        byte = np.int64(data[at])
        if byte != 92:
            out[to] = byte
            to += 1
            at += 1
            continue
        byte = np.int64(data[at + 1])
        at += 2
        if byte == 117:
            code = hex4(data, at)
            at += 4
            if code < 0 or at > end or 0xDC00 <= code < 0xE000:
                return -1
            if 0xD800 <= code < 0xDC00:
                if at + 6 > end or data[at] != 92 or data[at + 1] != 117:
                    return -1
                low = hex4(data, at + 2)
                if not 0xDC00 <= low < 0xE000:
                    return -1
                code = 0x10000 + ((code - 0xD800) << 10) + (low - 0xDC00)
                at += 6
            if code < 0x80:
                out[to] = code
                to += 1
            elif code < 0x800:
                out[to] = 0xC0 | (code >> 6)
                out[to + 1] = 0x80 | (code & 63)
                to += 2
            elif code < 0x10000:
                out[to] = 0xE0 | (code >> 12)
                out[to + 1] = 0x80 | ((code >> 6) & 63)
                out[to + 2] = 0x80 | (code & 63)
                to += 3
            else:
                out[to] = 0xF0 | (code >> 18)
                out[to + 1] = 0x80 | ((code >> 12) & 63)
                out[to + 2] = 0x80 | ((code >> 6) & 63)
                out[to + 3] = 0x80 | (code & 63)
                to += 4
            continue
        if byte == 110:
            byte = np.int64(10)
        elif byte == 116:
            byte = np.int64(9)
        elif byte == 114:
            byte = np.int64(13)
        elif byte == 98:
            byte = np.int64(8)
        elif byte == 102:
            byte = np.int64(12)
        elif byte not in (34, 92, 47):
            return -1
        out[to] = byte
        to += 1
    return to


@inlined
def scan_object(data: Any, at: Any, keys: Any, key_ends: Any, spans: Any) -> Any:
    """The end of the line whose object starts at `at`, or -1 if Python has to read the line.

    Sets spans[field] to (start, end, kind): kind 1 is a plain string, 2 a string with escapes, 3 a number or boolean.
    """
    for wanted in range(FIELDS):
        spans[wanted, 2] = 0
    at = skip_space(data, at + 1)
    if data[at] == 125:
        at = skip_space(data, at + 1)
        return at if data[at] == 10 else -1
    while True:
        if data[at] != 34:
            return -1
        first = at + 1
        at, escaped = skip_string(data, first)
        if at < 0 or escaped:
            return -1
        wanted = match_key(data, first, at, keys, key_ends)
        at = skip_space(data, at + 1)
        if data[at] != 58:
            return -1
        at = skip_space(data, at + 1)
        byte = data[at]
        if wanted >= 0 and spans[wanted, 2] != 0:
            return -1
        if byte == 34:
            first = at + 1
            at, escaped = skip_string(data, first)
            if at < 0:
                return -1
            if wanted >= 0:
                spans[wanted, 0], spans[wanted, 1], spans[wanted, 2] = first, at, 2 if escaped else 1
            at += 1
        else:
            first = at
            if byte in (91, 123):
                at = skip_nested(data, at)
                kind = 0
            elif byte > 57:
                at = skip_word(data, at)
                kind = 0 if byte == 110 else 3  # true and false are ratings, null is not
            else:
                at = skip_number(data, at)
                kind = 3
            if at < 0:
                return -1
            if wanted >= 0:
                if kind == 0 or wanted != 1:
                    return -1
                spans[wanted, 0], spans[wanted, 1], spans[wanted, 2] = first, at, kind
        at = skip_space(data, at)
        if data[at] == 44:
            at = skip_space(data, at + 1)
        elif data[at] == 125:
            at = skip_space(data, at + 1)
            return at if data[at] == 10 else -1
        else:
            return -1


@inlined
def copy_field(data: Any, span: Any, out: Any, to: int) -> Any:
    """Copy a field to out[to:]; the end of the copy, or -1 for a bad escape."""
    if span[2] == 2:
        return unescape(data, span[0], span[1], out, to)
    size = span[1] - span[0]
    copy_bytes(data, span[0], out, to, size)
    return to + size


@compiled
def scan_lines(
    data: Any,  # uint8: whole lines, the last byte is a newline
    keys: Any,  # bytes of the wanted keys, one after another: text, rating, title
    key_ends: Any,  # where each key ends
    text: Any,
    text_offsets: Any,
    rating: Any,
    rating_offsets: Any,
    starts: Any,  # where each line starts
    status: Any,  # OK, BLANK or SLOW, for each line
) -> Any:
    """(lines, rows). The text and rating of each OK line are copied out in order; these are the rows."""
    spans = np.zeros((FIELDS, 3), np.int64)
    no_rating = key_ends[1] == key_ends[0]
    at, line, row = 0, 0, 0
    text_to, rating_to = 0, 0
    text_offsets[0] = 0
    rating_offsets[0] = 0
    while at < data.shape[0]:
        starts[line] = at
        first = skip_space(data, at)
        status[line] = BLANK if data[first] == 10 else SLOW
        end = scan_object(data, first, keys, key_ends, spans) if data[first] == 123 else -1
        if end >= 0 and spans[0, 2] > 0 and (spans[1, 2] > 0 or no_rating):
            to = text_to
            if spans[2, 2] > 0:
                to = copy_field(data, spans[2], text, to)
                if to >= 0:
                    text[to] = 32
                    to += 1
            if to >= 0:
                to = copy_field(data, spans[0], text, to)
            rating_end = rating_to if no_rating else copy_field(data, spans[1], rating, rating_to)
            if to >= 0 and rating_end >= 0:
                text_to, rating_to = to, rating_end
                row += 1
                text_offsets[row], rating_offsets[row] = text_to, rating_to
                status[line] = OK
        at = max(at, end)
        while data[at] != 10:
            at += 1
        at += 1
        line += 1
    return line, row
