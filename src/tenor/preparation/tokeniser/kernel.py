"""The compiled tokeniser: UTF-8 bytes to word ids in one pass, without Python objects for words.

Plain ASCII words are gathered 64 bytes at a time; all other text is read character by character. Keys and hashes of
many words are gathered first and then looked up together.
"""

# ruff: noqa: PLR0911, PLR0912, PLR0915 - compiled loops stay in one function: state lives in registers
from __future__ import annotations

from typing import Any

import numpy as np

from tenor.compiled import compiled, inlined
from tenor.preparation.tokeniser.characters import APOSTROPHE, COMPOSE, ENTITY, IGNORED, MARK, SPACE, SYMBOL, TAG, WORD
from tenor.preparation.tokeniser.gather import ROOM, gather
from tenor.preparation.tokeniser.lookup import (
    BATCH,
    K1,
    K2,
    LONG,
    MAX_WORD_BYTES,
    U0,
    U1,
    U2,
    U3,
    U4,
    U8,
    U29,
    U32,
    U56,
    U64,
    finalise,
    insert,
    note,
    probe,
)

DONE, SLOW = 0, 1  # status of a row: tokenised, or to be cleaned in Python first

_LOWERED = LONG  # flag in a word's place: the word is in `lowered`, not in the data
_U255 = np.uint64(255)


@compiled
def read_entity(data: Any, at: Any, end: Any) -> Any:
    """Read the HTML entity that may begin at data[at] == '&'.

    Returns:
        (code point, position after the entity); (-1, at) if it is not an entity; (-2, at) if it has a name, which
        Python looks up.
    """
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
    """The position after the HTML tag that begins at data[at] == '<', or `at` if it is not a tag."""
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


@inlined
def decode(data: Any, at: Any) -> Any:
    """(code point, number of its bytes) of the valid UTF-8 at data[at]."""
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


@inlined
def write_ids(
    words: Any,  # number of gathered words
    data: Any,
    lowered: Any,
    gathered: Any,  # key, check, hash, place of each; place: 256 · position + bytes, in `lowered` if the top bit is set
    slots: Any,
    arena: Any,
    starts: Any,
    used: Any,
    frozen: Any,
    stop_words: Any,
    tokens: Any,
    written: Any,
    room: Any,  # tokens that may still be written
    row: Any,  # the two hashes and the number of words of the row so far
) -> Any:
    """Look up the gathered words, add new ones to the table, and write their ids.

    This is separate from reading the bytes, so that the processor has many look-ups in progress at once: most of their
    time is spent waiting for memory.

    Returns:
        The index after the last id that was written.
    """
    lane_a, lane_b, count = row[0], row[1], row[2]
    for word in range(words):
        at = U4 * np.uint64(word)
        key, check, spread = gathered[at], gathered[at + U1], gathered[at + U2]
        slot, number = probe(key, check, spread, slots)
        if number < 0 and not frozen:
            place = gathered[at + U3]
            size = np.int64(place & _U255)
            first = np.int64((place & ~_LOWERED) >> U8)
            if place & _LOWERED:  # noqa: SIM108 - two lines are easier to read
                held = lowered[first : first + size]
            else:
                held = data[first : first + size] | np.uint8(32)
            number = insert(slot, key, check, held, size, slots, arena, starts, used)
        if number >= stop_words or number < 0:
            lane_a = ((lane_a ^ spread) * K2) ^ (lane_a >> U29)
            lane_b = (lane_b + spread) * K1
            lane_b ^= lane_b >> U32
            count += U1
            if room > 0:
                tokens[written] = number
                written += 1
                room -= 1
    row[0], row[1], row[2] = lane_a, lane_b, count
    return written


@compiled
def tokenise(
    data: Any,  # uint8: the rows' bytes
    offsets: Any,  # row r is data[offsets[r]:offsets[r + 1]]
    first_row: Any,
    fold: Any,  # uint8 (256,): lower case of ASCII word characters, 0 for every other byte
    kinds: Any,
    lower: Any,
    slots: Any,  # the word table
    arena: Any,
    starts: Any,
    used: Any,
    frozen: Any,
    stop_words: Any,  # ids below this are stop words, which are skipped
    max_length: Any,  # tokens kept of each row
    tokens: Any,
    lengths: Any,
    hashes: Any,  # (rows, 2)
    status: Any,
    filled: Any,  # (1,): number of tokens written
) -> Any:
    """Tokenise the rows from `first_row` on.

    Returns:
        The row before which the word table must grow, or the number of rows if all are done.
    """
    lowered = np.empty(BATCH * MAX_WORD_BYTES + 8, np.uint8)
    gathered, sums = np.empty(4 * BATCH, np.uint64), np.empty(3, np.uint64)
    digits = U0 - np.uint64(fold[48] != 0)
    rows = offsets.shape[0] - 1
    written = filled[0]
    for row in range(first_row, rows):
        at, end = np.int64(offsets[row]), np.int64(offsets[row + 1])
        room = end - at
        if not frozen and (4 * (used[0] + room // 2 + 64) > slots.shape[0] or used[1] + 2 * room + 64 > arena.shape[0]):
            filled[0] = written
            return row
        begun = written
        sums[0], sums[1], sums[2] = K1, K2, U0
        words, base = 0, 0  # gathered words, and where the current word starts in `lowered`
        size = 0  # bytes of the current word
        cut = False  # the current word has reached MAX_WORD_BYTES
        packed, spread, twin, shift = U0, U0, U0, U0
        mark = np.int64(0)
        apostrophe = False
        slow = False
        while True:
            if size == 0:
                if words > BATCH - ROOM - 2:
                    written = write_ids(
                        words, data, lowered, gathered, slots, arena, starts, used, frozen,
                        stop_words, tokens, written, max_length - (written - begun), sums,
                    )  # fmt: skip
                    words, base = 0, 0
                if at < end and data[at] < 0x80:
                    before = at
                    at, words = gather(data, at, end, digits, words, gathered, slots)
                    if at > before:
                        mark = np.int64(0)
                        continue
            if not apostrophe and not cut:
                while at < end:
                    low = fold[data[at]]
                    if low == 0:
                        break
                    lowered[base + size] = low
                    size += 1
                    packed |= np.uint64(low) << shift
                    shift += U8
                    at += 1
                    if shift == U64:
                        spread = (spread ^ packed) * K1
                        spread ^= spread >> U32
                        twin = (twin + packed) * K2
                        packed, shift = U0, U0
                        if size == MAX_WORD_BYTES:
                            cut = True
                            break
            if size > 0:
                mark = np.int64(0)
            # The end of the row counts as a space, so that the same lines finish the last word.
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
                step = max(1, tag_end(data, at, end) - at)
            if kind == COMPOSE:
                slow = True
                break
            at += step
            if kind == WORD:
                mark = np.int64(0)
                for turn in range(2):  # first the pending apostrophe, then the character
                    if cut or (turn == 0 and not apostrophe):
                        continue
                    first = size
                    size = encode(np.int64(39) if turn == 0 else np.int64(lower[code]), lowered, base + first) - base
                    if size > MAX_WORD_BYTES:
                        size = first
                        cut = True
                    for i in range(first, size):
                        packed |= np.uint64(lowered[base + i]) << shift
                        shift += U8
                        if shift == U64:
                            spread = (spread ^ packed) * K1
                            spread ^= spread >> U32
                            twin = (twin + packed) * K2
                            packed, shift = U0, U0
                apostrophe = False
                continue
            if kind == IGNORED:
                continue
            if kind == APOSTROPHE and size > 0 and not apostrophe:
                apostrophe = True
                mark = np.int64(0)
                continue
            apostrophe = False
            while True:  # first for the word that ends here, then for a mark or symbol
                if size > 0:
                    if size < 8:
                        key = packed | (np.uint64(size) << U56)
                        check = U0
                        spread = finalise(key)
                    else:
                        spread = finalise((spread ^ packed) * K1 + np.uint64(size))
                        key = spread | LONG
                        check = ((twin + packed) * K2) >> U32
                    note(gathered, words, key, check, spread, _LOWERED | np.uint64(base << 8 | size))
                    base += size
                    words += 1
                    size = 0
                    cut = False
                    packed, spread, twin, shift = U0, U0, U0, U0
                if (kind == MARK and code != mark) or kind == SYMBOL:
                    mark = code
                    size = encode(code, lowered, base) - base
                    for i in range(size):
                        packed |= np.uint64(lowered[base + i]) << (U8 * np.uint64(i))
                    kind = SPACE
                else:
                    if kind != MARK and mark not in (0, code):
                        mark = np.int64(0)
                    break
            if at > end:
                break
        if slow:
            written = begun
        else:
            written = write_ids(
                words, data, lowered, gathered, slots, arena, starts, used, frozen,
                stop_words, tokens, written, max_length - (written - begun), sums,
            )  # fmt: skip
        status[row] = SLOW if slow else DONE
        lengths[row] = written - begun
        hashes[row, 0] = finalise(sums[0] + sums[2])
        hashes[row, 1] = finalise(sums[1] ^ sums[0])
    filled[0] = written
    return rows


@inlined
def encode(code: Any, out: Any, at: Any) -> Any:
    """Write a code point as UTF-8 to out[at:]; return the position after it."""
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
