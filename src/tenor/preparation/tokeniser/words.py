"""A growing table of distinct words in plain arrays, which compiled code can fill and files can store."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from tenor.compiled import compiled, inlined
from tenor.preparation.tokeniser.lookup import K1, K2, LONG, U0, U1, U2, U7, U8, U32, U56, finalise, insert, probe
from tenor.store.ragged import copy_rows, is_outside

_MIN_SLOTS = 1 << 12


class WordTable:
    """Gives each word an id in the order of first occurrence.

    `slots` is an open-addressing table of (key, id); `arena` holds the bytes of the words.
    """

    def __init__(self, slots: int = 1 << 16, arena: int = 1 << 20) -> None:
        self.slots = np.zeros(2 * max(slots, _MIN_SLOTS), np.uint64)
        self.arena = np.zeros(arena, np.uint8)
        self.starts = np.zeros(len(self.slots) // 4 + 2, np.int64)
        self.used = np.zeros(2, np.int64)  # words, bytes

    def __len__(self) -> int:
        return int(self.used[0])

    def reserve(self, words: int, size: int) -> None:
        """Make room for this many more words with `size` bytes in total."""
        need = 4 * (len(self) + words) + 4  # at most half full
        if need > len(self.slots):
            slots = 1 << int(need - 1).bit_length()
            self.starts = _grown(self.starts, slots // 4 + 2)
            self.slots = np.zeros(slots, np.uint64)
            refill(self.arena, self.starts, len(self), self.slots)
        if self.used[1] + size > len(self.arena):
            self.arena = _grown(self.arena, max(2 * len(self.arena), int(self.used[1]) + size))

    def add(self, data: npt.NDArray[np.uint8], starts: npt.NDArray[np.int64]) -> npt.NDArray[np.int32]:
        """The ids of the words data[starts[i]:starts[i + 1]]; new words are added."""
        self.reserve(len(starts) - 1, int(starts[-1] - starts[0]) + 64)
        found = np.empty(len(starts) - 1, np.int32)
        look_up(data, starts, False, self.slots, self.arena, self.starts, self.used, found)
        return found

    def find(self, data: npt.NDArray[np.uint8], starts: npt.NDArray[np.int64]) -> npt.NDArray[np.int32]:
        """The ids of words; -1 for words that are not in the table."""
        found = np.empty(len(starts) - 1, np.int32)
        look_up(data, starts, True, self.slots, self.arena, self.starts, self.used, found)
        return found

    def contents(self) -> tuple[npt.NDArray[np.uint8], npt.NDArray[np.int64]]:
        """(bytes of all words in the order of their ids, where each word starts)."""
        return self.arena[: self.used[1]], self.starts[: len(self) + 1]


def pack(words: list[bytes]) -> tuple[npt.NDArray[np.uint8], npt.NDArray[np.int64]]:
    """(bytes of all words, where each word starts)."""
    starts = np.zeros(len(words) + 1, np.int64)
    np.cumsum([len(word) for word in words], out=starts[1:])
    return np.frombuffer(b"".join(words), np.uint8), starts


def are_words(values: list[Any]) -> bool:
    """Whether all values are words: strings of at least one character that UTF-8 can represent."""
    try:
        return "" not in values and "".join(values).encode() is not None
    except (TypeError, UnicodeEncodeError):
        return False


def unpack(data: npt.NDArray[np.uint8], starts: npt.NDArray[np.int64]) -> list[bytes]:
    """The opposite of `pack`."""
    whole = data.tobytes()
    return [whole[a:b] for a, b in zip(starts[:-1].tolist(), starts[1:].tolist(), strict=True)]


def pick(
    data: npt.NDArray[np.uint8], starts: npt.NDArray[np.int64], which: npt.NDArray[np.int64]
) -> tuple[npt.NDArray[np.uint8], npt.NDArray[np.int64]]:
    """The packed words with the given indices, packed in that order."""
    lengths = starts[which + 1] - starts[which]
    packed = np.zeros(len(which) + 1, np.int64)
    np.cumsum(lengths, out=packed[1:])
    chosen = np.empty(packed[-1], np.uint8)
    copy_rows(data, starts[which], lengths, packed, chosen)
    return chosen, packed


def word_hashes(data: npt.NDArray[np.uint8], starts: npt.NDArray[np.int64]) -> npt.NDArray[np.uint64]:
    """The 64-bit hash of each word; its first bits name the word part that counts the word."""
    out = np.empty(len(starts) - 1, np.uint64)
    hash_all(data, starts, out)
    return out


def _grown(array: npt.NDArray[Any], size: int) -> npt.NDArray[Any]:
    bigger = np.zeros(size, array.dtype)
    bigger[: len(array)] = array
    return bigger


@inlined
def word_key(data: Any, first: int, last: int) -> Any:
    """(key, check, hash) of a word, the same as the tokeniser computes."""
    packed, spread, twin = U0, U0, U0
    size = last - first
    for i in range(size):
        packed |= np.uint64(data[first + i]) << (U8 * (np.uint64(i) & U7))
        if (i + 1) & 7 == 0:
            spread = (spread ^ packed) * K1
            spread ^= spread >> U32
            twin = (twin + packed) * K2
            packed = U0
    if size < 8:
        key = packed | (np.uint64(size) << U56)
        return key, U0, finalise(key)
    check = ((twin + packed) * K2) >> U32
    spread = finalise((spread ^ packed) * K1 + np.uint64(size))
    return spread | LONG, check, spread


@compiled
def refill(arena: Any, starts: Any, count: Any, slots: Any) -> None:
    """Put words that are known to be different into empty slots."""
    mask = np.uint64(slots.shape[0] // 2 - 1)
    for word in range(count):
        key, check, spread = word_key(arena, starts[word], starts[word + 1])
        at = spread & mask
        while slots[U2 * at] != U0:
            at = (at + U1) & mask
        slots[U2 * at] = key
        slots[U2 * at + U1] = (check << U32) | np.uint64(word)


@compiled
def look_up(data: Any, places: Any, frozen: Any, slots: Any, arena: Any, starts: Any, used: Any, found: Any) -> None:
    """Find the words data[places[i]:places[i + 1]]; unless `frozen`, add those that are not in the table."""
    for word in range(found.shape[0]):
        first, last = places[word], places[word + 1]
        if is_outside(first, last - first, data.shape[0]):
            raise IndexError("a word outside its bytes")
        key, check, spread = word_key(data, first, last)
        slot, number = probe(key, check, spread, slots)
        if number < 0 and not frozen:
            number = insert(slot, key, check, data[first:last], last - first, slots, arena, starts, used)
        found[word] = number


@compiled
def hash_all(data: Any, starts: Any, out: Any) -> None:
    for word in range(out.shape[0]):
        if is_outside(starts[word], starts[word + 1] - starts[word], data.shape[0]):
            raise IndexError("a word outside its bytes")
        _, _, out[word] = word_key(data, starts[word], starts[word + 1])
