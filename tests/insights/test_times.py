"""Dates in the forms that review files have, and their periods."""

from __future__ import annotations

import datetime as dt

import numpy as np
import pytest

from tenor.insights.times import NO_DAY, choose_period, days_of, periods_of


def day(year: int, month: int, date: int) -> int:
    return (dt.date(year, month, date) - dt.date(1970, 1, 1)).days


@pytest.mark.parametrize(
    "value",
    [
        *("2009-09-13", "2009/9/13", "2009.09.13", "2009-09-13T23:59:59Z", "2009-09-13 23:59:59.000001", "09 13, 2009"),
        *("13 September 2009", "13 Sep 2009", "September 13, 2009", "13-Sep-2009", "20090913", " 2009-09-13 "),
        *("1252843200", "1252843200.5", "1252843200000", "1252843200000000", "1252843200000000000"),
    ],
)
def test_forms_of_a_date(value: str) -> None:
    assert days_of([value]).tolist() == [day(2009, 9, 13)]


@pytest.mark.parametrize("value", ["", "B0000530HU", "2009-13-01", "13/09/2009", "99 99, 2009", "5"])
def test_values_that_are_not_dates(value: str) -> None:
    assert days_of([value]).tolist() == [NO_DAY]


@pytest.mark.parametrize(
    ("span", "period"), [(1, "day"), (40, "day"), (41, "week"), (300, "month"), (2000, "quarter"), (20_000, "year")]
)
def test_the_shortest_period_that_is_readable(span: int, period: str) -> None:
    assert choose_period(np.array([0, span - 1], np.int32)) == period


@pytest.mark.parametrize("period", ["day", "week", "month", "quarter", "year"])
def test_periods_follow_each_other_and_contain_their_days(period: str) -> None:
    days = np.array([day(2023, 12, 31), NO_DAY, day(2024, 1, 1), day(2024, 2, 29), day(2024, 7, 1)], np.int32)
    numbers, names = periods_of(days, period)
    assert numbers[1] == -1 and numbers.max() == len(names) - 1 and numbers[0] == 0
    assert names == sorted(names) and len(set(names)) == len(names)
    for at in np.flatnonzero(numbers >= 0):
        date = dt.date(1970, 1, 1) + dt.timedelta(int(days[at]))
        monday = date - dt.timedelta(date.weekday())
        expected = {
            "day": date.isoformat(),
            "week": monday.isoformat(),
            "month": f"{date:%Y-%m}",
            "quarter": f"{date.year}-Q{(date.month + 2) // 3}",
            "year": str(date.year),
        }
        assert names[numbers[at]] == expected[period]


def test_rows_without_dates_have_no_periods() -> None:
    numbers, names = periods_of(np.full(3, NO_DAY, np.int32), "month")
    assert numbers.tolist() == [-1, -1, -1] and names == []
