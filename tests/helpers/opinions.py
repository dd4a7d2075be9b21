"""Planted reviews: words of opinion that negators turn around, or topics that they leave alone."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

GOOD = tuple(f"good{letter}" for letter in "abcdefghijklmnopqrst")
BAD = tuple(f"bad{letter}" for letter in "abcdefghijklmnopqrst")


def planted(num_rows: int, *, turns: bool = True, seed: int = 0) -> tuple[list[str], list[int]]:
    """Texts and labels (0 or 1). With `turns`, an opinion counts as its opposite after `not`.

    Without it, the words are topics: `not` says nothing about the label.
    """
    rng, texts, labels = np.random.default_rng(seed), [], []
    for row in range(num_rows):
        label, sentences = int(rng.integers(2)), [f"review {row}"]
        for _ in range(4):
            negated = rng.random() < 0.4
            side = 1 - label if negated and turns else label
            word = str(rng.choice((BAD, GOOD)[side]))
            sentences.append(f"the lamp is {'not ' if negated else ''}very {word} and here come four more words")
        texts.append(" ".join(sentences))
        labels.append(label)
    return texts, labels


@dataclass
class ListedRows:
    """Rows in memory that are read like a split."""

    rows: Sequence[Sequence[int]]
    labels: NDArray[np.uint8]

    @property
    def lengths(self) -> NDArray[np.int32]:
        return np.array([len(row) for row in self.rows], np.int32)

    def __len__(self) -> int:
        return len(self.rows)

    def gather(self, rows: NDArray[np.int64]) -> tuple[NDArray[np.int32], NDArray[np.int32]]:
        chosen = [self.rows[row] for row in rows]
        return np.array([token for row in chosen for token in row], np.int32), self.lengths[rows]
