"""Words by their hash, for compiled code: keys, the open-addressing table, adding what is new.

Up to seven bytes of a word are its key, exactly; a longer word is known by 95 bits of two hashes, because comparing
bytes would cost two cache misses a word (with a thousand million distinct words the chance that any two are mixed up
is below 10⁻¹⁰). Ids are those of a `WordTable`.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from tenor.compiled import inlined

MAX_WORD_BYTES = 64  # a longer word is cut before the character that does not fit
BATCH = 256  # words gathered before they are looked up

U0, U1, U2, U3, U4 = np.uint64(0), np.uint64(1), np.uint64(2), np.uint64(3), np.uint64(4)
U7, U8 = np.uint64(7), np.uint64(8)
U29, U32, U33 = np.uint64(29), np.uint64(32), np.uint64(33)
U56, U64 = np.uint64(56), np.uint64(64)
LONG = np.uint64(1 << 63)
LOW = np.uint64(0xFFFFFFFF)
K1 = np.uint64(0x9E3779B97F4A7C15)
K2 = np.uint64(0xC2B2AE3D27D4EB4F)
_F1 = np.uint64(0xFF51AFD7ED558CCD)
_F2 = np.uint64(0xC4CEB9FE1A85EC53)


@inlined
def finalise(value: Any) -> Any:
    """Spread every bit of a 64-bit value over all of them (MurmurHash3's finaliser)."""
    value = (value ^ (value >> U33)) * _F1
    value = (value ^ (value >> U33)) * _F2
    return value ^ (value >> U33)


@inlined
def probe(key: Any, check: Any, spread: Any, slots: Any) -> Any:
    """(slot, id) of a word: where it is, or the empty slot where it belongs and -1.

    slots[2 * i] is a key, slots[2 * i + 1] its check and its id, 32 bits each: one cache line holds all.
    """
    mask = np.uint64(slots.shape[0] // 2 - 1)
    at = spread & mask
    while True:
        held = slots[U2 * at]
        if held == key:
            rest = slots[U2 * at + U1]
            if rest >> U32 == check:
                return at, np.int64(rest & LOW)
        elif held == U0:
            return at, np.int64(-1)
        at = (at + U1) & mask


@inlined
def insert(at: Any, key: Any, check: Any, word: Any, size: Any, slots: Any, arena: Any, starts: Any, used: Any) -> Any:
    """Put word[:size] into the empty slot `at`; its id. used = (words, bytes)."""
    added, first = used[0], used[1]
    slots[U2 * at] = key
    slots[U2 * at + U1] = (check << U32) | np.uint64(added)
    for i in range(size):
        arena[first + i] = word[i]
    starts[added + 1] = first + size
    used[0], used[1] = added + 1, first + size
    return added


@inlined
def note(gathered: Any, words: Any, key: Any, check: Any, spread: Any, place: Any) -> None:
    """Put a word behind those gathered before it; one array, because every further one costs the loop registers."""
    at = U4 * np.uint64(words)  # no sign, so no look at it
    gathered[at] = key
    gathered[at + U1] = check
    gathered[at + U2] = spread
    gathered[at + U3] = place
