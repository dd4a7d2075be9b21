"""The tokeniser's fast path: plain ASCII words, 64 bytes of text at a time.

It gives the same words, keys and hashes as the slow path. Bit masks say where words begin and end, so no branch depends
on the length of a word of up to 15 bytes. The processor mispredicts about one branch per 64 bytes instead of one per
word.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from tenor.compiled import inlined
from tenor.corpus.scanning.wide import WIDE, count_leading_zeros, count_zeros, load8, prefetch, text_masks
from tenor.preparation.tokeniser.lookup import BATCH, K1, K2, LONG, U0, U1, U2, U3, U8, U32, U56, finalise, note

MARGIN = WIDE + 16  # bytes that must follow a position, so that it can be read
ROOM = WIDE // 2  # words that one step can find
_ALL = np.uint64(0xFFFFFFFFFFFFFFFF)
_HALF = np.uint64(0x7FFFFFFFFFFFFFFF)
_U63 = np.uint64(63)
_SMALL = np.uint64(0x2020202020202020)  # turns ASCII letters into lower case and leaves digits unchanged


@inlined
def gather(
    data: Any,
    at: Any,
    end: Any,
    digits: Any,  # all bits set where digits are word characters, none where they are separators
    words: Any,
    gathered: Any,  # (4 · BATCH,): key, check, hash, and 256 · position + bytes of each word
    slots: Any,  # of the word table, in which the words will be looked up
) -> Any:
    """Gather plain words from `at`, which is the start of a word or a separator, up to `end`.

    Stops before a word or byte that the slow path must handle, near the end of the data, or when `gathered` is full.

    Returns:
        (position after the gathered text, number of gathered words).
    """
    stop = min(end, data.shape[0] - MARGIN)
    mask = np.uint64(slots.shape[0] // 2 - 1)
    while at < stop and words <= BATCH - ROOM:
        letters, numerals, special = text_masks(data, at)
        word = letters | (numerals & digits)
        if end - at < WIDE:  # the bytes after the row count as separators
            inside = (U1 << np.uint64(end - at)) - U1
            word &= inside
            special &= inside
        limit = count_zeros(special)
        below = _ALL if limit == WIDE else (U1 << np.uint64(limit)) - U1
        word &= below
        # A word that touches the limit may continue after it.
        whole = WIDE - count_leading_zeros(~word & below)
        if whole < limit:
            word &= (U1 << np.uint64(whole)) - U1
        while word != U0:
            start = count_zeros(word)
            size = count_zeros(~(word >> np.uint64(start)))
            word &= word + (word & (U0 - word))  # without its lowest run of ones
            first = at + start
            key, check, spread = word_key(data, first, size)
            note(gathered, words, key, check, spread, (np.uint64(first) << U8) | np.uint64(size))
            prefetch(slots, np.int64(U2 * (spread & mask)))
            words += 1
        at += whole
        if limit < WIDE or whole == 0:
            break
    return min(at, end), words


@inlined
def word_key(data: Any, first: Any, size: Any) -> Any:
    """(key, check, hash) of an ASCII word of `size` bytes in lower case; at least 16 bytes can be read from `first`."""
    low = load8(data, first) | _SMALL
    high = load8(data, first + 8) | _SMALL
    if size >= 16:
        return long_key(data, first, size)
    low &= _ALL >> (U8 * np.uint64(8 - min(size, 8)))
    high &= _HALF >> (_U63 - U8 * np.uint64(max(size, 8) - 8))
    length = np.uint64(size)
    short = low | (length << U56)
    spread = low * K1
    spread = ((spread ^ (spread >> U32)) ^ high) * K1 + length
    is_long = U0 - (length >> U3)  # all bits or none, instead of a branch that is often mispredicted
    is_short = ~is_long
    spread = finalise((spread & is_long) | (short & is_short))
    key = ((spread | LONG) & is_long) | (short & is_short)
    return key, (((low * K2 + high) * K2) >> U32) & is_long, spread


@inlined
def long_key(data: Any, first: Any, size: Any) -> Any:
    spread, twin = U0, U0
    for at in range(first, first + size - 7, 8):
        packed = load8(data, at) | _SMALL
        spread = (spread ^ packed) * K1
        spread ^= spread >> U32
        twin = (twin + packed) * K2
    left = size & 7
    packed = (load8(data, first + size - left) | _SMALL) & (_HALF >> (_U63 - U8 * np.uint64(left)))
    spread = finalise((spread ^ packed) * K1 + np.uint64(size))
    return spread | LONG, ((twin + packed) * K2) >> U32, spread
