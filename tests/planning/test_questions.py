"""Limits of time and money: which row is chosen, and what is said if none fits."""

import pytest

from tenor.errors import UsageError
from tenor.planning.questions import answer
from tenor.planning.rows import Interval, PlanRow, mark_front
from tenor.planning.settings import PlanSettings


def row(workers: int, hours: float, dollars: float, unsure: float = 1.2) -> PlanRow:
    seconds = 3600 * hours
    time, cost = (Interval(value, value / unsure, value * unsure) for value in (seconds, dollars))
    return PlanRow(
        workers, "m", workers, workers, "allreduce", 64, 1.0, None, None, time, cost, time, None, None, None, ()
    )


ROWS = mark_front([row(1, 8.0, 1.0), row(2, 4.5, 1.2), row(4, 2.5, 1.5), row(8, 1.6, 2.2), row(16, 1.5, 4.5)])


@pytest.mark.parametrize(
    ("under", "workers"),
    [("2h", 8), ("6h", 2), ("12h", 1), ("2usd", 4), ("3usd", 8), ("3h,2usd", 4), ("1d,1.3usd", 1)],
)
def test_the_cheapest_in_time_and_the_fastest_for_the_money(under: str, workers: int) -> None:
    found = answer(ROWS, PlanSettings(under=under).limits())
    assert found.row is not None and ROWS[found.row].workers == workers and "may fail" not in found.text


def test_a_row_that_may_miss_the_limit_says_so() -> None:
    found = answer(ROWS, (1.55 * 3600, None))
    assert found.row == 4 and "may fail" in found.text and "cheapest" in found.text


def test_no_row_fits() -> None:
    assert answer(ROWS, (60.0, None)).row is None and "the fastest is 16 workers" in answer(ROWS, (60.0, None)).text
    assert "the cheapest is 1 worker on" in answer(ROWS, (None, 0.5)).text


def test_without_a_limit_time_and_money_count_alike() -> None:
    assert answer(ROWS, (None, None)).row == 3  # 1.6 × 2.2 = 3.52 is the smallest product


@pytest.mark.parametrize("under", ["fast", "1", "0h", "-1h", "3eur", "1h;2usd"])
def test_wrong_limits_are_refused(under: str) -> None:
    with pytest.raises(UsageError, match="under cannot be"):
        PlanSettings(under=under)


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"workers": "0"}, "workers"),
        ({"workers": "1-"}, "workers"),
        ({"workers": "100000"}, "workers"),
        ({"batch_size": "large"}, "batch_size"),
        ({"reviews": "many"}, "reviews"),
        ({"mix": "1:0"}, "mix"),
        ({"mix": "1;3"}, "mix"),
        ({"network": "fast"}, "network"),
        ({"accuracy": 1.0}, "accuracy"),
        ({"epochs": -1}, "epochs"),
        ({"sync_every": 0}, "sync_every"),
        ({"write": "word"}, "write"),
        ({"job": "x"}, "no effect without"),
        ({"strategy": "hybrid"}, "strategy"),
        ({"sums": "star"}, "sums"),
        ({"sums": "tree", "strategy": "async"}, "do not add up"),
    ],
)
def test_wrong_settings_are_refused(wrong: dict[str, object], message: str) -> None:
    with pytest.raises(UsageError, match=message):
        PlanSettings(**wrong)  # type: ignore[arg-type]


def test_numbers_as_people_write_them() -> None:
    assert PlanSettings(workers="1-10,3").worker_counts() == (1, 2, 3, 4, 8, 10)
    assert PlanSettings(workers=7).worker_counts() == (7,)
    assert [PlanSettings(reviews=text).num_reviews() for text in ("500000", "142.8M", "2B", "1.5k", "")] == [
        500_000,
        142_800_000,
        2_000_000_000,
        1500,
        0,
    ]
    assert PlanSettings(under="30m").limits() == (1800.0, None) and PlanSettings(under="2d,3.5usd").limits() == (
        172_800.0,
        3.5,
    )
    assert PlanSettings(mix="1:3").slowness() == (1.0, 3.0)
