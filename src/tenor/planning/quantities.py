"""Numbers that are known only roughly, and how their errors reach a result.

A number has a value and a relative error σ: its logarithm is taken to be normal with the deviation σ. A result that is
computed from several such numbers gets its error by computing it again with each of them one σ higher and one σ lower
(the delta method, in logarithms): σ² = Σ ((ln f(+σᵢ) − ln f(−σᵢ)) / 2)². The same sum tells which number matters most.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass

SPAN = 1.645  # sigmas on each side of an interval that holds 9 of 10 results


@dataclass(frozen=True)
class Quantity:
    """A number with its relative error and where both come from."""

    value: float
    sigma: float
    source: str


@dataclass(frozen=True)
class Forecast:
    """A predicted number with its interval, and the share of its variance that each input causes."""

    value: float
    low: float
    high: float
    shares: Mapping[str, float]


Factors = Mapping[str, float]  # by the name of a quantity: the number to multiply it by


def forecast(compute: Callable[[Factors], float], quantities: Mapping[str, Quantity]) -> Forecast:
    """Predict a number and its interval.

    Args:
        compute: Gives the number, above 0, if the named quantities are multiplied by these factors; others by 1.
        quantities: All inputs that are known only roughly.
    """
    value = compute({})
    squares = {}
    for name, quantity in quantities.items():
        if quantity.sigma:
            higher, lower = (compute({name: math.exp(sign * quantity.sigma)}) for sign in (1, -1))
            squares[name] = (math.log(higher / lower) / 2) ** 2
    total = sum(squares.values())
    spread = math.exp(SPAN * math.sqrt(total))
    shares = {name: square / total for name, square in squares.items()} if total else {}
    return Forecast(value, value / spread, value * spread, shares)
