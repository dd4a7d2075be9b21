"""The word table for compiled code: keys, look-up by open addressing, and adding new words.

A word of up to seven bytes is its own key. A longer word is identified by 95 bits of two hashes, because comparing
bytes would cost two cache misses per word. With 10⁹ distinct words, the chance that any two are confused is below
10⁻¹⁰. Ids are those of a `WordTable`.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from tenor.compiled import inlined

MAX_WORD_BYTES = 64  # a longer word is truncated before the first character that does not fit
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
    """Let every bit of a 64-bit value influence all bits (MurmurHash3's finaliser)."""
    value = (value ^ (value >> U33)) * _F1
    value = (value ^ (value >> U33)) * _F2
    return value ^ (value >> U33)


@inlined
def probe(key: Any, check: Any, spread: Any, slots: Any) -> Any:
    """Look up a word.

    slots[2 * i] is a key; slots[2 * i + 1] is its check and its id, 32 bits each. One cache line holds all three.

    Returns:
        (slot, id) of the word, or (the empty slot where it belongs, -1).
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
    """Put word[:size] into the empty slot `at`, and return its id. `used` is (words, bytes) of the table."""
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
    """Append a word to the gathered ones: all in one array, because each further array costs the loop registers."""
    at = U4 * np.uint64(words)  # unsigned, so that no code for negative indices is made
    gathered[at] = key
    gathered[at + U1] = check
    gathered[at + U2] = spread
    gathered[at + U3] = place
