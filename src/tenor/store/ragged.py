"""Ragged rows: one after another in one array."""

from __future__ import annotations

from typing import Any

from tenor.compiled import compiled


@compiled
def copy_rows(tokens: Any, starts: Any, lengths: Any, places: Any, out: Any) -> None:
    """Copy the rows of the given lengths from where they start in `tokens` to their places in `out`."""
    for row in range(starts.shape[0]):
        first, to = starts[row], places[row]
        for i in range(lengths[row]):
            out[to + i] = tokens[first + i]
