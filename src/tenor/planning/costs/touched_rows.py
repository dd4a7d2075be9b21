"""How many rows of a table a batch touches, from how many reviews contain each word or n-gram.

If a share p of the reviews contains a word, a batch of n independent reviews contains the word with the probability
1 − (1 − p)^n, and touches Σ 1 − (1 − p_v)^n rows. Two things make the usual form with tokens instead of reviews wrong
by 13 to 25 % on real reviews: a word that a review contains once it often contains again, and batches hold reviews of
similar length, which have similar words. So words are counted once per review, separately for groups of lengths.

A batch is drawn from the training rows without replacement. A word that d of the N reviews of a group contain is in a
batch of n of them with the probability 1 − C(N−d, n) / C(N, n). This is used where the batch comes from the counted
reviews themselves; it matters for batches that are a large part of their group.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

GROUPS = 8  # of lengths


@dataclass(frozen=True)
class Spectrum:
    """How often the rows of a table occur: `rows[i]` of them are in `reviews[i]` reviews each."""

    reviews: tuple[int, ...]
    rows: tuple[int, ...]


def _chance(reviews: int, containing: int, drawn: float) -> float:
    """The chance that one of `drawn` reviews out of `reviews` is among those `containing` a word."""
    others = reviews - containing - drawn
    if others < 0:
        return 1.0
    logs = math.lgamma(reviews - containing + 1) + math.lgamma(reviews - drawn + 1)
    return -math.expm1(logs - math.lgamma(others + 1) - math.lgamma(reviews + 1))


@dataclass(frozen=True)
class LengthGroup:
    """Reviews of similar length, and the spectrum of each table in them."""

    reviews: int
    mean_tokens: float
    spectra: dict[str, Spectrum]

    def expected(self, table: str, drawn: float, is_whole: bool) -> float:
        """The rows that a batch of this group touches.

        Args:
            table: Name of the table.
            drawn: Reviews of the batch.
            is_whole: Whether the batch is drawn from the counted reviews, and not from many more like them.
        """
        counts = np.array(self.spectra[table].reviews, np.float64)
        rows = np.array(self.spectra[table].rows, np.float64)
        if is_whole:
            touched = np.array([_chance(self.reviews, count, drawn) for count in self.spectra[table].reviews])
        else:
            touched = -np.expm1(drawn * np.log1p(-np.minimum(counts / self.reviews, 1.0 - 1e-12)))
        return float((rows * touched).sum())


@dataclass(frozen=True)
class RowFrequencies:
    """The groups of a corpus, and the whole corpus for several batches of different lengths together."""

    groups: tuple[LengthGroup, ...]
    whole: LengthGroup

    def expected(self, table: str, batch: float, is_whole: bool = True) -> float:
        """The mean number of rows that a batch touches: batches fall into the groups in proportion to their reviews.

        A batch larger than a group has reviews of all lengths.
        """
        if batch > min(group.reviews for group in self.groups):
            return self.together(table, batch, is_whole)
        parts = [group.reviews * group.expected(table, batch, is_whole) for group in self.groups]
        return sum(parts) / self.whole.reviews

    def together(self, table: str, reviews: float, is_whole: bool = True) -> float:
        """The rows that reviews of all lengths touch together."""
        return self.whole.expected(table, reviews, is_whole)


def spectrum_of(counts: NDArray[np.int64], known: NDArray[np.bool_] | None = None) -> Spectrum:
    """The spectrum of a table.

    Args:
        counts: For each row of the table, the reviews that contain it.
        known: The rows that a model uses; None for all.
    """
    own = counts if known is None else counts[known]
    reviews, rows = np.unique(own[own > 0], return_counts=True)
    return Spectrum(tuple(reviews.tolist()), tuple(rows.tolist()))


def scaled_rows(rows: float, factor: float, table_rows: int, exponent: float) -> float:
    """The rows that a batch touches that is `factor` times larger, if nothing is known but the rows of one batch.

    Heaps' law: without a limit, rows grow with a power of the batch. With x = −V ln(1 − rows/V), which removes the
    limit of a table of V rows: V (1 − exp(−x × factor^exponent / V)). A rough guess: the exponent depends on the text.
    """
    filled = min(rows / table_rows, 1.0 - 1e-9)
    return float(table_rows * -np.expm1(np.log1p(-filled) * factor**exponent))
