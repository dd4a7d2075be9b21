"""The Pareto front of offers that have a price and a second figure, such as seconds."""

from __future__ import annotations

from collections.abc import Sequence


def pareto_front(offers: Sequence[tuple[float, float]]) -> list[bool]:
    """Tell for each offer whether no other one is better in one figure and at least as good in the other.

    Args:
        offers: Two figures of each offer, of which smaller is better. Equal offers do not beat each other.

    >>> pareto_front([(1.0, 9.0), (2.0, 5.0), (3.0, 6.0)])
    [True, True, False]
    """
    best: dict[float, float] = {}  # first figure → the smallest second figure with at most this first figure
    least = float("inf")
    for first, second in sorted(offers):
        is_better = second < least
        least = min(least, second)
        best.setdefault(first, least if is_better else float("-inf"))
    return [second <= best[first] for first, second in offers]
