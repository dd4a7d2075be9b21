"""Compiled passes over ragged rows of integers: copy, lay, count, translate."""

from __future__ import annotations

from typing import Any

from tenor.compiled import compiled
from tenor.corpus.wide import prefetch

_AHEAD = 4


@compiled
def copy_rows(tokens: Any, starts: Any, lengths: Any, out: Any) -> None:
    """Lay the rows that start at `starts` one after the other."""
    to = 0
    for row in range(starts.shape[0]):
        first = starts[row]
        for i in range(lengths[row]):
            out[to + i] = tokens[first + i]
        to += lengths[row]


@compiled
def lay_rows(tokens: Any, lengths: Any, places: Any, out: Any) -> None:
    """Lay rows that follow each other at their places."""
    first = 0
    for row in range(lengths.shape[0]):
        to = places[row]
        for i in range(lengths[row]):
            out[to + i] = tokens[first + i]
        first += lengths[row]


@compiled
def count_rows(tokens: Any, starts: Any, lengths: Any, chosen: Any, counts: Any) -> None:
    """Count the words of the chosen rows."""
    for row in range(starts.shape[0]):
        if chosen[row]:
            first = starts[row]
            for i in range(lengths[row]):
                counts[tokens[first + i]] += 1


@compiled
def translate_rows(tokens: Any, table: Any, starts: Any, lengths: Any, places: Any, out: Any) -> None:
    """Write each row's words, as table[word], to its place."""
    rows = starts.shape[0]
    for row in range(rows):
        ahead = min(row + _AHEAD, rows - 1)  # rows lie here and there: have the next ones on their way
        prefetch(tokens, starts[ahead])
        prefetch(out, places[ahead])
        first, to = starts[row], places[row]
        for i in range(lengths[row]):
            out[to + i] = table[tokens[first + i]]
