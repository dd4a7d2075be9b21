"""Compiled loops over rows of word ids: count words, translate ids.

Both raise IndexError if a row or an id is outside its array.
"""

from __future__ import annotations

from typing import Any

from tenor.compiled import compiled
from tenor.corpus.scanning.wide import prefetch
from tenor.store.ragged import is_outside

_AHEAD = 4


@compiled
def count_rows(tokens: Any, starts: Any, lengths: Any, chosen: Any, counts: Any) -> None:
    """Add the words of the chosen rows to `counts`."""
    rows = starts.shape[0]
    if lengths.shape[0] < rows or chosen.shape[0] < rows:
        raise IndexError("a row without length or choice")
    for row in range(rows):
        if chosen[row]:
            first, length = starts[row], lengths[row]
            if is_outside(first, length, tokens.shape[0]):
                raise IndexError("a row outside its array")
            for i in range(length):
                word = tokens[first + i]
                if word < 0 or word >= counts.shape[0]:
                    raise IndexError("a word that is not in the table")
                counts[word] += 1


@compiled
def translate_rows(tokens: Any, table: Any, starts: Any, lengths: Any, places: Any, out: Any) -> None:
    """Write table[word] for each word of each row to `out`, from the row's place on."""
    rows = starts.shape[0]
    if lengths.shape[0] < rows or places.shape[0] < rows:
        raise IndexError("a row without length or place")
    for row in range(rows):
        ahead = min(row + _AHEAD, rows - 1)  # rows are scattered, so fetch the next ones early
        prefetch(tokens, starts[ahead])
        prefetch(out, places[ahead])
        first, to, length = starts[row], places[row], lengths[row]
        if is_outside(first, length, tokens.shape[0]) or is_outside(to, length, out.shape[0]):
            raise IndexError("a row outside its array")
        for i in range(length):
            word = tokens[first + i]
            if word < 0 or word >= table.shape[0]:
                raise IndexError("a word that is not in the table")
            out[to + i] = table[word]
