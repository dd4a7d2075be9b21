"""Compare two models on the same rows with McNemar's test: only the rows that exactly one of them gets right count.

If both models were equally good, each such row would favour either of them with probability ½, like a coin. The exact
test adds up the probabilities of all results that are at least as uneven as the observed one. It is cautious; the mid-p
variant counts the observed result half, and its errors are closer to the nominal level (Fagerland, Lydersen and Laake
2013, "The McNemar test for binary matched-pairs data"). So the verdict uses the mid-p value.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

LEVEL = 0.05  # below this mid-p value, the difference counts as real
_Z = 1.959963984540054  # 97.5 % quantile of the normal distribution, for intervals of 95 %
_NEGLIGIBLE = 1e-18  # relative size below which further terms of a sum do not matter


@dataclass(frozen=True)
class PairedTest:
    """How two models did on the same rows.

    Attributes:
        rows: Rows that both judged.
        both_right: Rows that both got right.
        only_first: Rows that only the first model got right.
        only_second: Rows that only the second model got right.
        flipped: Rows on which the predictions differ; with more than two classes both may be wrong.
        difference: Accuracy of the second model minus accuracy of the first.
        low: Lower end of the 95 % interval of the difference.
        high: Upper end of the 95 % interval of the difference.
        p_exact: P-value of McNemar's exact test.
        p_mid: Its mid-p value.
    """

    rows: int
    both_right: int
    only_first: int
    only_second: int
    flipped: int
    difference: float
    low: float
    high: float
    p_exact: float
    p_mid: float

    @property
    def better(self) -> str:
        """`first`, `second`, or `neither` if the difference may be chance."""
        if self.p_mid >= LEVEL:
            return "neither"
        return "second" if self.only_second > self.only_first else "first"


def paired_test(first: NDArray[np.int64], second: NDArray[np.int64], labels: NDArray[np.int64]) -> PairedTest:
    """Compare the predicted labels of two models with the true labels, (rows,) each."""
    right, other = first == labels, second == labels
    only_first, only_second = int((right & ~other).sum()), int((other & ~right).sum())
    rows, difference = len(labels), only_second - only_first
    variance = only_first + only_second - difference * difference / max(rows, 1)
    margin = _Z * math.sqrt(max(variance, 0.0))
    exact, mid = mcnemar(only_first, only_second)
    return PairedTest(
        rows=rows,
        both_right=int((right & other).sum()),
        only_first=only_first,
        only_second=only_second,
        flipped=int((first != second).sum()),
        difference=difference / max(rows, 1),
        low=(difference - margin) / max(rows, 1),
        high=(difference + margin) / max(rows, 1),
        p_exact=exact,
        p_mid=mid,
    )


def mcnemar(only_first: int, only_second: int) -> tuple[float, float]:
    """Return the two-sided exact p-value and the mid-p value.

    Args:
        only_first: Rows that only the first model got right.
        only_second: Rows that only the second model got right.
    """
    total, fewer = only_first + only_second, min(only_first, only_second)
    if not total:
        return 1.0, 1.0
    log_term = math.lgamma(total + 1) - math.lgamma(fewer + 1) - math.lgamma(total - fewer + 1) - total * math.log(2)
    observed = term = tail = math.exp(log_term)  # the probability of exactly `fewer` heads
    for count in range(fewer, 0, -1):  # and of each smaller number of heads
        term *= count / (total - count + 1)
        tail += term
        if term < _NEGLIGIBLE * tail:
            break
    return min(1.0, 2 * tail), min(1.0, 2 * tail - observed)
