"""Nearest neighbours by cosine, of words and of sums of words."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import numpy.typing as npt

from tenor.embedding.vectors import Vectors, load_vectors
from tenor.errors import UsageError

Neighbours = list[tuple[str, float]]

_TERM = re.compile(r"\s*([+-])\s+")


def neighbours(vectors: Vectors | str | Path, queries: Sequence[str], count: int = 10) -> dict[str, Neighbours]:
    """The words nearest to each query, by cosine, with the words of the query left out.

    Args:
        vectors: Word vectors, or the folder or file that holds them.
        queries: Words, or sums such as `"king - man + woman"` (with spaces around the signs).
        count: How many neighbours to give for each.

    Returns:
        For each query its neighbours as (word, cosine), nearest first.

    Raises:
        UsageError: A word has no vector, or `count` is not positive.

    >>> tenor.neighbours("vectors", ["six"], count=2)  # doctest: +SKIP
    {'six': [('seven', 0.93), ('five', 0.92)]}
    """
    if count < 1:
        raise UsageError(f"--count cannot be {count}", remedy="give a number above 0")
    table = vectors if isinstance(vectors, Vectors) else load_vectors(vectors)
    return {query: nearest(table, *_parse(table, query), count) for query in queries}


def nearest(vectors: Vectors, direction: npt.NDArray[np.float32], left_out: Sequence[int], count: int) -> Neighbours:
    """The `count` words whose vectors point most nearly in a direction."""
    cosines = vectors.directions @ direction
    cosines[list(left_out)] = -np.inf
    count = min(count, len(cosines) - len(set(left_out)))
    best = np.argpartition(-cosines, count - 1)[:count] if count else np.empty(0, np.int64)
    best = best[np.argsort(-cosines[best], kind="stable")]
    return [(vectors.words[place], float(cosines[place])) for place in best]


def _parse(vectors: Vectors, query: str) -> tuple[npt.NDArray[np.float32], list[int]]:
    """The direction that a query asks for, and the rows of its words."""
    first, *rest = _TERM.split(query.strip())
    terms = [("+", first), *zip(rest[::2], rest[1::2], strict=True)]
    words = [word.strip() for _, word in terms]
    signs = np.array([1.0 if sign == "+" else -1.0 for sign, _ in terms], np.float32)
    total = signs @ np.stack([_scaled(vectors.vector(word)) for word in words])
    return _scaled(total), [place for word in words if (place := vectors.place(word)) is not None]


def _scaled(vector: npt.NDArray[np.float32]) -> npt.NDArray[np.float32]:
    return vector / np.float32(max(float(np.linalg.norm(vector)), 1e-12))
