"""The compiled tokeniser: UTF-8 bytes to word ids, one pass, no Python object a word.

A word's bytes are gathered in lower case while it is read. Up to seven of them are the key itself (exact, no
comparison needed); a longer word's key is its hash, and its bytes are compared. Ids are those of a `WordTable`.
"""

# ruff: noqa: PLR0911, PLR0912, PLR0915 - compiled loops stay in one function: state lives in registers
from __future__ import annotations

from typing import Any

import numpy as np

from tenor.corpus.compiled import compiled
from tenor.preparation.characters import APOSTROPHE, COMPOSE, ENTITY, IGNORED, MARK, SPACE, SYMBOL, TAG, WORD

MAX_WORD_CHARACTERS = 64
SCRATCH_BYTES = 4 * MAX_WORD_CHARACTERS + 8

DONE, SLOW = 0, 1  # a row's status: tokenised, or to be cleaned in Python first

_U0, _U1, _U7, _U8 = np.uint64(0), np.uint64(1), np.uint64(7), np.uint64(8)
_U29, _U32, _U33, _U56 = np.uint64(29), np.uint64(32), np.uint64(33), np.uint64(56)
_LONG = np.uint64(1 << 63)
_K1 = np.uint64(0x9E3779B97F4A7C15)
_K2 = np.uint64(0xC2B2AE3D27D4EB4F)
_F1 = np.uint64(0xFF51AFD7ED558CCD)
_F2 = np.uint64(0xC4CEB9FE1A85EC53)


@compiled
def finalise(value: Any) -> Any:
    """Spread every bit of a 64-bit value over all of them (MurmurHash3's finaliser)."""
    value = (value ^ (value >> _U33)) * _F1
    value = (value ^ (value >> _U33)) * _F2
    return value ^ (value >> _U33)


@compiled
def find_or_add(key: Any, spread: Any, scratch: Any, size: int, frozen: bool, slots: Any, ids: Any, words: Any) -> Any:
    """The id of the word in scratch[:size]; -1 when the table is frozen and does not hold it.

    `words` is (arena, starts, used): used[0] words fill used[1] bytes.
    """
    arena, starts, used = words
    mask = np.uint64(slots.shape[0] - 1)
    at = spread & mask
    while True:
        held = slots[at]
        if held == _U0:
            break
        if held == key:
            found = ids[at]
            if key < _LONG:
                return found
            first = starts[found]
            if starts[found + 1] - first == size:
                same = True
                for i in range(size):
                    if arena[first + i] != scratch[i]:
                        same = False
                        break
                if same:
                    return found
        at = (at + _U1) & mask
    if frozen:
        return -1
    added = used[0]
    slots[at] = key
    ids[at] = added
    first = used[1]
    for i in range(size):
        arena[first + i] = scratch[i]
    used[0] = added + 1
    used[1] = first + size
    starts[added + 1] = first + size
    return added


@compiled
def read_entity(data: Any, at: Any, end: Any) -> Any:
    """(code point, position after it) of the entity at data[at] == '&'; (-1, at) none; (-2, at) a name for Python."""
    stop = at + 1
    while stop < end and stop < at + 34 and data[stop] != 59:
        byte = data[stop]
        if not (48 <= byte <= 57 or 65 <= byte <= 90 or 97 <= byte <= 122 or (byte == 35 and stop == at + 1)):
            return -1, at
        stop += 1
    if stop >= end or data[stop] != 59 or stop == at + 1:
        return -1, at
    if data[at + 1] != 35:
        return -2, at
    base = 10
    first = at + 2
    if first < stop and (data[first] | 32) == 120:
        base = 16
        first += 1
    if first == stop:
        return -1, at
    value = 0
    for i in range(first, stop):
        byte = data[i]
        digit = byte - 48 if byte <= 57 else (byte | 32) - 87
        if digit >= base:
            return -1, at
        value = min(value * base + digit, 0x110000)
    if value == 0 or value >= 0x110000 or 0xD800 <= value < 0xE000:
        return -1, at
    return value, stop + 1


@compiled
def tag_end(data: Any, at: Any, end: Any) -> Any:
    """The position after the HTML tag at data[at] == '<', or `at` when none begins there."""
    first = at + 1
    if first < end and data[first] == 47:
        first += 1
    if first >= end or not 97 <= (data[first] | 32) <= 122:
        return at
    while first < end:
        if data[first] == 62:
            return first + 1
        if data[first] == 60:
            return at
        first += 1
    return at


@compiled
def decode(data: Any, at: Any) -> Any:
    """(code point, its bytes) of the valid UTF-8 at data[at]."""
    byte = np.int64(data[at])
    if byte < 0x80:
        return byte, 1
    if byte < 0xE0:
        return ((byte & 31) << 6) | (data[at + 1] & 63), 2
    if byte < 0xF0:
        return ((byte & 15) << 12) | ((data[at + 1] & 63) << 6) | (data[at + 2] & 63), 3
    return (
        ((byte & 7) << 18) | ((data[at + 1] & 63) << 12) | ((data[at + 2] & 63) << 6) | (data[at + 3] & 63),
        4,
    )


@compiled
def tokenise(
    data: Any,  # uint8: the rows' bytes
    offsets: Any,  # row r is data[offsets[r]:offsets[r + 1]]
    first_row: int,
    kinds: Any,
    lower: Any,
    slots: Any,
    ids: Any,
    words: Any,  # (arena, starts, used) of the word table
    options: Any,  # (frozen, ids below this are skipped: the stop words, tokens kept a row)
    out: Any,  # (tokens, lengths, hashes (rows, 2), status, filled)
) -> Any:
    """Tokenise rows from `first_row` on; the row before which the word table must grow, or the number of rows."""
    frozen, stop_words, max_length = options
    tokens, lengths, hashes, status, filled = out
    arena, _, used = words
    scratch = np.empty(SCRATCH_BYTES, np.uint8)
    rows = offsets.shape[0] - 1
    written = filled[0]
    for row in range(first_row, rows):
        start, end = np.int64(offsets[row]), np.int64(offsets[row + 1])
        room = end - start
        if not frozen and (2 * (used[0] + room // 2 + 64) > slots.shape[0] or used[1] + 2 * room + 64 > arena.shape[0]):
            filled[0] = written
            return row
        begun = written
        count = 0
        lane_a, lane_b = _K1, _K2
        size = 0  # bytes of the word being read
        length = 0  # its characters
        packed, spread = _U0, _U0
        mark = np.int64(0)
        apostrophe = False
        at = start
        slow = False
        while at <= end:
            # The end of the row reads as a space, so that the last word is finished by the same lines.
            code, step = np.int64(32), 1
            if at < end:
                code = np.int64(data[at])
                if code >= 0x80:
                    code, step = decode(data, at)
            kind = kinds[code]
            if kind == ENTITY:
                value, after = read_entity(data, at, end)
                kind = SPACE
                if value == -2:
                    slow = True
                    break
                if value > 0:
                    step = after - at
                    code = value
                    kind = kinds[code]
                    if kind in (ENTITY, TAG):
                        kind = SPACE
            elif kind == TAG:
                kind = SPACE
                after = tag_end(data, at, end)
                if after > at:
                    step = after - at
            if kind == COMPOSE:
                slow = True
                break
            at += step
            if kind == WORD:
                mark = np.int64(0)
                if length < MAX_WORD_CHARACTERS:
                    if apostrophe:
                        scratch[size] = 39
                        packed |= np.uint64(39) << (_U8 * (np.uint64(size) & _U7))
                        size += 1
                        length += 1
                        if size & 7 == 0:
                            spread = (spread ^ packed) * _K1
                            spread ^= spread >> _U32
                            packed = _U0
                    code = np.int64(lower[code])
                    if code < 0x80:
                        scratch[size] = code
                        packed |= np.uint64(code) << (_U8 * (np.uint64(size) & _U7))
                        size += 1
                        if size & 7 == 0:
                            spread = (spread ^ packed) * _K1
                            spread ^= spread >> _U32
                            packed = _U0
                    else:
                        first = size
                        size = encode(code, scratch, size)
                        for i in range(first, size):
                            packed |= np.uint64(scratch[i]) << (_U8 * (np.uint64(i) & _U7))
                            if (i + 1) & 7 == 0:
                                spread = (spread ^ packed) * _K1
                                spread ^= spread >> _U32
                                packed = _U0
                    length += 1
                apostrophe = False
                continue
            if kind == IGNORED:
                continue
            if kind == APOSTROPHE and size > 0 and not apostrophe:
                apostrophe = True
                mark = np.int64(0)
                continue
            apostrophe = False
            while True:  # once for the word that ends here, once more for a mark or symbol
                if size > 0:
                    if size < 8:
                        key = packed | (np.uint64(size) << _U56)
                        spread = finalise(key)
                    else:
                        spread = finalise((spread ^ packed) * _K1 + np.uint64(size))
                        key = spread | _LONG
                    found = find_or_add(key, spread, scratch, size, frozen, slots, ids, words)
                    if found >= stop_words or found < 0:
                        lane_a = ((lane_a ^ spread) * _K2) ^ (lane_a >> _U29)
                        lane_b = (lane_b + spread) * _K1
                        lane_b ^= lane_b >> _U32
                        if count < max_length:
                            tokens[written] = found
                            written += 1
                        count += 1
                    size = 0
                    length = 0
                    packed, spread = _U0, _U0
                if (kind == MARK and code != mark) or kind == SYMBOL:
                    mark = code
                    size = encode(code, scratch, 0)
                    for i in range(size):
                        packed |= np.uint64(scratch[i]) << (_U8 * np.uint64(i))
                    kind = SPACE
                else:
                    if kind != MARK and mark not in (0, code):
                        mark = np.int64(0)
                    break
        if slow:
            written = begun
            count = 0
            status[row] = SLOW
        else:
            status[row] = DONE
        lengths[row] = written - begun
        hashes[row, 0] = finalise(lane_a + np.uint64(count))
        hashes[row, 1] = finalise(lane_b ^ lane_a)
    filled[0] = written
    return rows


@compiled
def encode(code: Any, out: Any, at: Any) -> Any:
    """Write a code point as UTF-8 at out[at]; the position after it."""
    if code < 0x80:
        out[at] = code
        return at + 1
    if code < 0x800:
        out[at] = 0xC0 | (code >> 6)
        out[at + 1] = 0x80 | (code & 63)
        return at + 2
    if code < 0x10000:
        out[at] = 0xE0 | (code >> 12)
        out[at + 1] = 0x80 | ((code >> 6) & 63)
        out[at + 2] = 0x80 | (code & 63)
        return at + 3
    out[at] = 0xF0 | (code >> 18)
    out[at + 1] = 0x80 | ((code >> 12) & 63)
    out[at + 2] = 0x80 | ((code >> 6) & 63)
    out[at + 3] = 0x80 | (code & 63)
    return at + 4
