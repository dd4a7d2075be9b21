"""Where words stand in the training rows: how often in each class, inside and outside the scope of a negator."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

SCOPE = 3  # words after a negator that count as negated
COUNTED_ROWS = 1 << 17  # they are in random order, so more would change little
BLOCK = 4096

Counts = NDArray[np.int64]


class RowSource(Protocol):
    """What training reads rows from."""

    @property
    def lengths(self) -> NDArray[np.int32]: ...

    @property
    def labels(self) -> NDArray[np.uint8]: ...

    def __len__(self) -> int: ...

    def gather(self, rows: NDArray[np.int64]) -> tuple[NDArray[np.int32], NDArray[np.int32]]:
        """(tokens, lengths) of the given rows; the tokens follow each other in the order of `rows`."""
        ...


@dataclass(frozen=True)
class Contexts:
    """Occurrences of each word id.

    Attributes:
        bare: (classes, words) outside the scope of a negator.
        negated: (classes, words) inside the scope of a negator.
        after: By kind of word, (words,) right after one of the signs of this kind.
        negators: Whether each word is a negator.
    """

    bare: Counts
    negated: Counts
    after: Mapping[str, Counts]
    negators: NDArray[np.bool_]

    @property
    def total(self) -> Counts:
        """(words,)"""
        found: Counts = (self.bare + self.negated).sum(0)
        return found


def count(
    rows: RowSource, num_words: int, negators: NDArray[np.bool_], signs: Mapping[str, NDArray[np.bool_]]
) -> Contexts:
    """Count words of rows of two classes.

    Args:
        rows: The training rows.
        num_words: Ids are below this number.
        negators: Whether each id is a negator.
        signs: By kind, whether each id is a sign of the kind.
    """
    bare, negated = np.zeros((2, num_words), np.int64), np.zeros((2, num_words), np.int64)
    after = {kind: np.zeros(num_words, np.int64) for kind in signs}
    for tokens, owners, labels in _blocks(rows):
        scope = np.zeros(len(tokens), bool)
        for step in range(1, SCOPE + 1):
            same = owners[step:] == owners[:-step]
            scope[step:] |= negators[tokens[:-step]] & same
        for label in (0, 1):
            mine = labels == label
            bare[label] += np.bincount(tokens[mine & ~scope], minlength=num_words)
            negated[label] += np.bincount(tokens[mine & scope], minlength=num_words)
        same = owners[1:] == owners[:-1]
        for kind, signs_of in signs.items():
            after[kind] += np.bincount(tokens[1:][signs_of[tokens[:-1]] & same], minlength=num_words)
    return Contexts(bare, negated, after, negators)


def _blocks(rows: RowSource) -> Iterator[tuple[NDArray[np.int32], NDArray[Any], NDArray[Any]]]:
    """(tokens, the row of each token, the label of each token)"""
    for first in range(0, min(len(rows), COUNTED_ROWS), BLOCK):
        numbers = np.arange(first, min(first + BLOCK, len(rows)))
        tokens, lengths = rows.gather(numbers)
        yield tokens, np.repeat(numbers, lengths), np.repeat(rows.labels[numbers], lengths)
