"""Rows of token ids as the deep part reads them. Loads no torch."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from tenor.compiled import compiled


def shortened(
    tokens: NDArray[np.int32], lengths: NDArray[np.int32], limit: int
) -> tuple[NDArray[np.int32], NDArray[np.int32]]:
    """The first and the last tokens of each row that is longer than `limit`: half of the limit each."""
    if int(lengths.max(initial=0)) <= limit:
        return tokens, lengths
    short = np.minimum(lengths, limit).astype(np.int32)
    out = np.empty(int(short.sum(dtype=np.int64)), tokens.dtype)
    _shorten(tokens, lengths, limit - limit // 2, limit // 2, out)
    return out, short


@compiled
def _shorten(tokens: Any, lengths: Any, head: int, tail: int, out: Any) -> None:
    start, to = 0, 0
    for row in range(len(lengths)):
        end = start + lengths[row]
        if end > len(tokens):
            raise IndexError("a row is outside its array")
        skip_from, skip_to = (start + head, end - tail) if lengths[row] > head + tail else (end, end)
        for at in range(start, end):
            if not skip_from <= at < skip_to:
                out[to] = tokens[at]
                to += 1
        start = end
