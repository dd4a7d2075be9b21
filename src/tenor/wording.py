"""Numbers as people read them: times, money and bytes with their units."""

from __future__ import annotations

import math

_UNITS = ((86_400.0, "d"), (3600.0, "h"), (60.0, "min"), (1.0, "s"), (1e-3, "ms"))


def seconds_text(seconds: float) -> str:
    """Such as `3.2 h`, `45 s` or `17 ms`.

    >>> seconds_text(5400), seconds_text(0.0171)
    ('1.5 h', '17.1 ms')
    """
    if not math.isfinite(seconds):
        return "never"
    size, unit = next(((size, unit) for size, unit in _UNITS if seconds >= size), (1e-6, "µs"))
    return f"{_significant(seconds / size)} {unit}"


def dollars_text(dollars: float) -> str:
    """Dollars and cents, such as `$12.30`; smaller amounts as `less than $0.01`."""
    if not math.isfinite(dollars):
        return "never"
    return "less than $0.01" if 0 < dollars < 0.005 else f"${dollars:,.2f}"


def amount_text(dollars: float) -> str:
    """Dollars with three digits at most, for intervals: `$4.67`, `$675`, `$32,300`."""
    if not 1000 <= dollars < math.inf:
        return f"${dollars:,.0f}" if 100 <= dollars < math.inf else dollars_text(dollars)
    return f"${float(f'{dollars:.3g}'):,.0f}"


def percent_text(share: float) -> str:
    """A share as a percentage with two digits, such as `80 %` or `0.34 %`."""
    return f"{100 * share:.0f} %" if share >= 0.1 else f"{100 * share:.2g} %"


def bytes_text(count: float) -> str:
    """Such as `1.3 MB`."""
    size, unit = next(((s, u) for s, u in ((1e9, "GB"), (1e6, "MB"), (1e3, "kB")) if count >= s), (1.0, "bytes"))
    return f"{_significant(count / size)} {unit}"


def _significant(value: float) -> str:
    return f"{value:,.0f}" if value >= 100 else f"{value:.2g}" if value < 10 else f"{value:.3g}"
