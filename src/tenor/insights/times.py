"""Dates of reviews: from what a file says to days since 1970, and from days to periods."""

from __future__ import annotations

import datetime as dt
import functools
import re
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

NO_DAY = np.iinfo(np.int32).min
_EPOCH = dt.date(1970, 1, 1).toordinal()
_NUMBER = re.compile(r"[0-9]{9,19}(\.[0-9]*)?\Z")
_ISO = re.compile(r"([0-9]{4})[-/.]([0-9]{1,2})(?:[-/.]([0-9]{1,2}))?(?:[T ].*)?\Z")
_AMAZON = re.compile(r"([0-9]{1,2}) ([0-9]{1,2}), ([0-9]{4})\Z")
_WORDS = ("%d %B %Y", "%d %b %Y", "%B %d, %Y", "%b %d, %Y", "%B %Y", "%b %Y", "%d-%b-%Y", "%Y%m%d", "%Y")
_PERIOD_DAYS = {"day": 1, "week": 7, "month": 30.4, "quarter": 91.3, "year": 365.25}
MOST_PERIODS = 40  # that `auto` chooses


def days_of(values: Sequence[str]) -> NDArray[np.int32]:
    """The day of each value, counted from 1 January 1970; NO_DAY for values that are not dates."""
    return np.array([_day(value) for value in values], np.int32)


@functools.lru_cache(maxsize=1 << 16)
def _day(value: str) -> int:
    try:
        return _parse(value.strip())
    except (ValueError, OverflowError):
        return NO_DAY


def _parse(value: str) -> int:
    if _NUMBER.match(value):
        seconds = float(value)
        while seconds > 1e11:  # milliseconds, microseconds or nanoseconds
            seconds /= 1000
        return int(seconds // 86400)
    if found := _ISO.match(value):
        year, month, day = found.groups()
        return dt.date(int(year), int(month), int(day or 1)).toordinal() - _EPOCH
    if found := _AMAZON.match(value):
        month, day, year = map(int, found.groups())
        return dt.date(year, month, day).toordinal() - _EPOCH
    for form in _WORDS:
        try:
            return dt.datetime.strptime(value, form).date().toordinal() - _EPOCH
        except ValueError:
            continue
    return NO_DAY


def choose_period(days: NDArray[np.int32]) -> str:
    """The shortest period that divides the days, which must all be known, into at most MOST_PERIODS."""
    span = int(days.max()) - int(days.min()) + 1
    return next((name for name, length in _PERIOD_DAYS.items() if span / length <= MOST_PERIODS), "year")


def periods_of(days: NDArray[np.int32], period: str) -> tuple[NDArray[np.int32], list[str]]:
    """(the number of each day's period, -1 for NO_DAY; the names of all periods in order).

    Periods without rows between others have a number and a name too.
    """
    numbers = np.full(len(days), -1, np.int32)
    known = np.flatnonzero(days != NO_DAY)
    if not len(known):
        return numbers, []
    different, place = np.unique(days[known], return_inverse=True)
    keys = np.array([_key(int(day), period) for day in different])
    first = int(keys.min())
    numbers[known] = (keys - first)[place]
    return numbers, [_name(key, period) for key in range(first, int(keys.max()) + 1)]


def _key(day: int, period: str) -> int:
    """A number that rises by one from each period to the next."""
    date = dt.date.fromordinal(day + _EPOCH)
    if period == "day":
        return day
    if period == "week":
        return (day + 3) // 7  # 1 January 1970 was a Thursday, and weeks begin on Monday
    months = 12 * date.year + date.month - 1
    return {"month": months, "quarter": months // 3, "year": date.year}[period]


def _name(key: int, period: str) -> str:
    if period == "day":
        return dt.date.fromordinal(key + _EPOCH).isoformat()
    if period == "week":
        return dt.date.fromordinal(7 * key - 3 + _EPOCH).isoformat()
    if period == "month":
        return f"{key // 12}-{key % 12 + 1:02d}"
    return f"{key // 4}-Q{key % 4 + 1}" if period == "quarter" else str(key)
