"""The compiled tokeniser: UTF-8 bytes to word ids, one pass, no Python object a word.

A word's bytes are gathered in lower case while it is read. Up to seven of them are the word's key, exactly; a longer
word is known by 95 bits of two hashes, because comparing bytes would cost two cache misses a word (with a thousand
million distinct words the chance that any two are mixed up is below 10⁻¹⁰). Ids are those of a `WordTable`.
"""

# ruff: noqa: PLR0911, PLR0912, PLR0915 - compiled loops stay in one function: state lives in registers
from __future__ import annotations

from typing import Any

import numpy as np

from tenor.corpus.compiled import compiled
from tenor.preparation.characters import APOSTROPHE, COMPOSE, ENTITY, IGNORED, MARK, SPACE, SYMBOL, TAG, WORD

MAX_WORD_BYTES = 64  # a longer word is cut before the character that does not fit
BATCH = 128  # words gathered before they are looked up

DONE, SLOW = 0, 1  # a row's status: tokenised, or to be cleaned in Python first

_U0, _U1, _U2, _U7, _U8 = np.uint64(0), np.uint64(1), np.uint64(2), np.uint64(7), np.uint64(8)
_U29, _U32, _U33 = np.uint64(29), np.uint64(32), np.uint64(33)
_U56, _U64 = np.uint64(56), np.uint64(64)
_LONG = np.uint64(1 << 63)
_LOW = np.uint64(0xFFFFFFFF)
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
def probe(key: Any, check: Any, spread: Any, slots: Any) -> Any:
    """(slot, id) of a word: where it is, or the empty slot where it belongs and -1.

    slots[2 * i] is a key, slots[2 * i + 1] its check and its id, 32 bits each: one cache line holds all.
    """
    mask = np.uint64(slots.shape[0] // 2 - 1)
    at = spread & mask
    while True:
        held = slots[_U2 * at]
        if held == key:
            rest = slots[_U2 * at + _U1]
            if rest >> _U32 == check:
                return at, np.int64(rest & _LOW)
        elif held == _U0:
            return at, np.int64(-1)
        at = (at + _U1) & mask


@compiled
def insert(at: Any, key: Any, check: Any, word: Any, size: Any, slots: Any, arena: Any, starts: Any, used: Any) -> Any:
    """Put word[:size] into the empty slot `at`; its id. used = (words, bytes)."""
    added, first = used[0], used[1]
    slots[_U2 * at] = key
    slots[_U2 * at + _U1] = (check << _U32) | np.uint64(added)
    for i in range(size):
        arena[first + i] = word[i]
    starts[added + 1] = first + size
    used[0], used[1] = added + 1, first + size
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
def settle(
    words: Any,  # how many
    lowered: Any,  # their bytes, one after the other
    ends: Any,
    keys: Any,
    checks: Any,
    spreads: Any,
    slots: Any,
    arena: Any,
    starts: Any,
    used: Any,
    frozen: Any,
    found: Any,
) -> None:
    """Look the gathered words up, adding new ones.

    Apart from the reading of bytes, so that the processor has many look-ups under way at once: most of their time
    is waiting for memory.
    """
    first = 0
    for word in range(words):
        slot, number = probe(keys[word], checks[word], spreads[word], slots)
        if number < 0 and not frozen:
            size = ends[word] - first
            held = lowered[first : first + size]
            number = insert(slot, keys[word], checks[word], held, size, slots, arena, starts, used)
        found[word] = number
        first = ends[word]


@compiled
def tokenise(
    data: Any,  # uint8: the rows' bytes
    offsets: Any,  # row r is data[offsets[r]:offsets[r + 1]]
    first_row: Any,
    fold: Any,  # uint8 (256,): the lower case of an ASCII word character, 0 for every other byte
    kinds: Any,
    lower: Any,
    slots: Any,  # the word table
    arena: Any,
    starts: Any,
    used: Any,
    frozen: Any,
    stop_words: Any,  # ids below this are skipped
    max_length: Any,  # tokens kept of a row
    tokens: Any,
    lengths: Any,
    hashes: Any,  # (rows, 2)
    status: Any,
    filled: Any,  # (1,): tokens written
) -> Any:
    """Tokenise rows from `first_row` on; the row before which the word table must grow, or the number of rows."""
    lowered = np.empty(BATCH * MAX_WORD_BYTES + 8, np.uint8)
    ends, found = np.empty(BATCH, np.int64), np.empty(BATCH, np.int64)
    keys, checks, spreads = np.empty(BATCH, np.uint64), np.empty(BATCH, np.uint64), np.empty(BATCH, np.uint64)
    rows = offsets.shape[0] - 1
    written = filled[0]
    for row in range(first_row, rows):
        at, end = np.int64(offsets[row]), np.int64(offsets[row + 1])
        room = end - at
        if not frozen and (4 * (used[0] + room // 2 + 64) > slots.shape[0] or used[1] + 2 * room + 64 > arena.shape[0]):
            filled[0] = written
            return row
        begun = written
        count = 0
        lane_a, lane_b = _K1, _K2
        words, base = 0, 0  # gathered, and where the word being read starts in `lowered`
        size = 0  # its bytes
        cut = False  # the word is longer than is kept
        packed, spread, twin, shift = _U0, _U0, _U0, _U0
        mark = np.int64(0)
        apostrophe = False
        slow = False
        while True:
            if not apostrophe and not cut:
                while at < end:
                    low = fold[data[at]]
                    if low == 0:
                        break
                    lowered[base + size] = low
                    size += 1
                    packed |= np.uint64(low) << shift
                    shift += _U8
                    at += 1
                    if shift == _U64:
                        spread = (spread ^ packed) * _K1
                        spread ^= spread >> _U32
                        twin = (twin + packed) * _K2
                        packed, shift = _U0, _U0
                        if size == MAX_WORD_BYTES:
                            cut = True
                            break
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
                step = max(1, tag_end(data, at, end) - at)
            if kind == COMPOSE:
                slow = True
                break
            at += step
            if kind == WORD:
                mark = np.int64(0)
                for turn in range(2):  # the apostrophe that waits, then the character
                    if cut or (turn == 0 and not apostrophe):
                        continue
                    first = size
                    size = encode(np.int64(39) if turn == 0 else np.int64(lower[code]), lowered, base + first) - base
                    if size > MAX_WORD_BYTES:
                        size = first
                        cut = True
                    for i in range(first, size):
                        packed |= np.uint64(lowered[base + i]) << shift
                        shift += _U8
                        if shift == _U64:
                            spread = (spread ^ packed) * _K1
                            spread ^= spread >> _U32
                            twin = (twin + packed) * _K2
                            packed, shift = _U0, _U0
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
                        check = _U0
                        spread = finalise(key)
                    else:
                        spread = finalise((spread ^ packed) * _K1 + np.uint64(size))
                        key = spread | _LONG
                        check = ((twin + packed) * _K2) >> _U32
                    base += size
                    keys[words], checks[words], spreads[words], ends[words] = key, check, spread, base
                    words += 1
                    size = 0
                    cut = False
                    packed, spread, twin, shift = _U0, _U0, _U0, _U0
                if (kind == MARK and code != mark) or kind == SYMBOL:
                    mark = code
                    size = encode(code, lowered, base) - base
                    for i in range(size):
                        packed |= np.uint64(lowered[base + i]) << (_U8 * np.uint64(i))
                    kind = SPACE
                else:
                    if kind != MARK and mark not in (0, code):
                        mark = np.int64(0)
                    break
            if at > end or words >= BATCH - 1:
                settle(words, lowered, ends, keys, checks, spreads, slots, arena, starts, used, frozen, found)
                for word in range(words):
                    if found[word] >= stop_words or found[word] < 0:
                        spread = spreads[word]
                        lane_a = ((lane_a ^ spread) * _K2) ^ (lane_a >> _U29)
                        lane_b = (lane_b + spread) * _K1
                        lane_b ^= lane_b >> _U32
                        if count < max_length:
                            tokens[written] = found[word]
                            written += 1
                        count += 1
                words, base, spread = 0, 0, _U0
                if at > end:
                    break
        if slow:
            written = begun
            count = 0
        status[row] = SLOW if slow else DONE
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
