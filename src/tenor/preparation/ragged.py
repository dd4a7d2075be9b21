"""Compiled passes over ragged rows of word ids: count, translate."""

from __future__ import annotations

from typing import Any

from tenor.compiled import compiled
from tenor.corpus.wide import prefetch

_AHEAD = 4


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
