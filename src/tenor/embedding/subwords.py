"""The character n-grams of words, hashed into buckets, so that rare and misspelt words have vectors too.

As in fastText (Bojanowski et al. 2017, "Enriching Word Vectors with Subword Information"), a word is the mean of its
own row and the rows of its n-grams. They are taken from `<word>`, so that its start and end differ from its middle.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from tenor.compiled import compiled

MAX_WORD_BYTES = 256  # of a word that are cut into n-grams
OFFSET, PRIME = np.uint32(2166136261), np.uint32(16777619)  # of the hash FNV-1a
START, END = np.uint8(ord("<")), np.uint8(ord(">"))
COMPOSED_TOGETHER = 4096  # words, so that memory stays small

Ints = npt.NDArray[np.int32]
Floats = npt.NDArray[np.float32]


@dataclass(frozen=True)
class Shape:
    """Which n-grams a word has, and how many buckets they share; 0 buckets mean no n-grams."""

    min_chars: int = 3
    max_chars: int = 6
    buckets: int = 0


@dataclass(frozen=True)
class Rows:
    """The rows of each word: `rows[starts[i] : starts[i + 1]]`, its own row first."""

    starts: npt.NDArray[np.int64]
    rows: Ints


def rows_of(words: Sequence[str], shape: Shape, first_bucket: int, with_own: bool = True) -> Rows:
    """The rows of each word.

    Args:
        words: The words; word i has row i.
        shape: Which n-grams count.
        first_bucket: The row of the first bucket.
        with_own: Whether a word has a row of its own; words that were not trained on have none.
    """
    if not shape.buckets:
        return Rows(np.arange(len(words) + 1), np.arange(len(words), dtype=np.int32))
    texts = [b"<" + word.encode()[:MAX_WORD_BYTES] + b">" for word in words]
    ends = np.cumsum([len(text) for text in texts], dtype=np.int64)
    letters = np.frombuffer(b"".join(texts), np.uint8)
    bounds = np.concatenate([[0], ends]).astype(np.int64)
    arguments = (letters, bounds, shape.min_chars, shape.max_chars, shape.buckets, first_bucket, with_own)
    counts = np.zeros(len(words), np.int64)
    _fill(*arguments, counts, np.empty(0, np.int64), np.empty(0, np.int32))
    starts = np.concatenate([[0], np.cumsum(counts)]).astype(np.int64)
    rows = np.empty(starts[-1], np.int32)
    _fill(*arguments, counts, starts, rows)
    return Rows(starts, rows)


@compiled
def _fill(
    letters: Any,
    bounds: Any,
    min_chars: Any,
    max_chars: Any,
    buckets: Any,
    first_bucket: Any,
    with_own: Any,
    counts: Any,
    starts: Any,
    rows: Any,
) -> None:
    """Count the rows of each word; with `starts`, also write them."""
    for word in range(len(bounds) - 1):
        begin, end = bounds[word], bounds[word + 1]
        found = 0
        if with_own:
            if len(starts):
                rows[starts[word]] = word
            found = 1
        for first in range(begin, end):
            if (letters[first] & 0xC0) == 0x80:  # inside a character
                continue
            code, chars, place = OFFSET, 0, first
            while place < end and chars < max_chars:
                code = np.uint32((code ^ letters[place]) * PRIME)
                place += 1
                while place < end and (letters[place] & 0xC0) == 0x80:
                    code = np.uint32((code ^ letters[place]) * PRIME)
                    place += 1
                chars += 1
                is_edge = chars == 1 and (first == begin or place == end)  # < or > alone
                if chars >= min_chars and not is_edge:
                    if len(starts):
                        rows[starts[word] + found] = first_bucket + np.int64(code % np.uint32(buckets))
                    found += 1
        counts[word] = found


def compose(table: Floats, rows: Rows) -> Floats:
    """The vector of each word: the mean of its rows; zeros for a word without rows."""
    num_words = len(rows.starts) - 1
    made = np.zeros((num_words, table.shape[1]), np.float32)
    for first in range(0, num_words, COMPOSED_TOGETHER):
        bounds = rows.starts[first : first + COMPOSED_TOGETHER + 1]
        counts = np.diff(bounds)
        if counts.sum() == 0:
            continue
        some = np.flatnonzero(counts)
        gathered = table[rows.rows[bounds[0] : bounds[-1]]]
        sums = np.add.reduceat(gathered, (bounds[:-1] - bounds[0])[some], axis=0)
        made[first + some] = sums / counts[some, None]
    return made
