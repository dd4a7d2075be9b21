"""Rows of different lengths, one after another in one array."""

from __future__ import annotations

from typing import Any

from tenor.compiled import compiled, inlined


@inlined
def is_outside(first: int, length: int, size: int) -> bool:
    """Whether [first, first + length) is not inside an array of `size`, computed without a sum that could overflow."""
    return first < 0 or length < 0 or length > size - first


@compiled
def copy_rows(tokens: Any, starts: Any, lengths: Any, places: Any, out: Any) -> None:
    """Copy rows: row i is tokens[starts[i] : starts[i] + lengths[i]] and goes to out[places[i]:].

    Raises:
        IndexError: A row is not inside `tokens` or `out`.
    """
    rows = starts.shape[0]
    if lengths.shape[0] < rows or places.shape[0] < rows:
        raise IndexError("a row has no length or no place")
    for row in range(rows):
        first, to, length = starts[row], places[row], lengths[row]
        if is_outside(first, length, tokens.shape[0]) or is_outside(to, length, out.shape[0]):
            raise IndexError("a row is outside its array")
        for i in range(length):
            out[to + i] = tokens[first + i]
