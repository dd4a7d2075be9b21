"""Answers to questions about a plan: what fits a limit of time or money, and which row to choose."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from tenor.planning.rows import Interval, PlanRow, mark_front
from tenor.wording import dollars_text, seconds_text

Limit = tuple[float | None, float | None]  # seconds, dollars


@dataclass(frozen=True)
class Answer:
    """The row to choose, and why, in words."""

    row: int | None  # its place among the rows; None if no row fits
    text: str


def answer(rows: Sequence[PlanRow], limit: Limit) -> Answer:
    """Choose a row.

    Under a limit of time it is the cheapest row that keeps the limit, under a limit of money the fastest, and under
    both the cheapest. A row keeps a limit for sure if the upper end of its interval does. Without a limit it is the row
    of the Pareto front with the smallest product of time and money.
    """
    seconds, dollars = limit
    if seconds is None and dollars is None:
        front = [place for place, row in enumerate(rows) if row.is_pareto]
        if not front:
            return Answer(None, "No row has a finite time.")
        best = min(front, key=lambda place: rows[place].total.value * rows[place].dollars.value)
        return Answer(best, f"The best compromise between time and money is {_describe(rows[best])}.")
    wish = _wish(seconds, dollars)
    for is_sure in (True, False):
        fitting = [place for place, row in enumerate(rows) if _keeps(row, limit, is_sure)]
        if fitting:
            key: Callable[[int], float] = _dollars_of(rows) if seconds is not None else _seconds_of(rows)
            best = min(fitting, key=key)
            which = "cheapest" if seconds is not None else "fastest"
            doubt = "" if is_sure else " It may fail: the upper end of its interval is beyond the limit."
            return Answer(best, f"The {which} plan {wish} is {_describe(rows[best])}.{doubt}")
    return Answer(None, f"No row is expected to stay {wish}; {_nearest(rows, seconds)}.")


def answer_for_accuracy(rows: Sequence[PlanRow], limit: Limit, least: float) -> Answer:
    """Choose among the rows that are known to have at least this accuracy; with 0, among all."""
    if not least:
        return answer(rows, limit)
    places = [place for place, row in enumerate(rows) if row.accuracy and row.accuracy.value >= least]
    if not places:
        best = max(row.accuracy.value for row in rows if row.accuracy)
        return Answer(None, f"No run reaches the accuracy {least:g}; the best one has {best:.4g}.")
    found = answer(mark_front([rows[place] for place in places]), limit)
    runs = f"Of {len(places)} run{'s' * (len(places) != 1)} with an accuracy of at least {least:g}:"
    return Answer(None if found.row is None else places[found.row], f"{runs} {found.text[:1].lower()}{found.text[1:]}")


def _keeps(row: PlanRow, limit: Limit, is_sure: bool) -> bool:
    def end(span: Interval) -> float:
        return span.high if is_sure else span.value

    seconds, dollars = limit
    return (seconds is None or end(row.total) <= seconds) and (dollars is None or end(row.dollars) <= dollars)


def _dollars_of(rows: Sequence[PlanRow]) -> Callable[[int], float]:
    return lambda place: rows[place].dollars.value


def _seconds_of(rows: Sequence[PlanRow]) -> Callable[[int], float]:
    return lambda place: rows[place].total.value


def _wish(seconds: float | None, dollars: float | None) -> str:
    parts = [] if seconds is None else [seconds_text(seconds)]
    parts += [] if dollars is None else [dollars_text(dollars)]
    return f"under {' and '.join(parts)}"


def _nearest(rows: Sequence[PlanRow], seconds: float | None) -> str:
    if seconds is not None:
        fastest = min(rows, key=lambda row: row.total.value)
        return f"the fastest is {_describe(fastest)}"
    return f"the cheapest is {_describe(min(rows, key=lambda row: row.dollars.value))}"


def _describe(row: PlanRow) -> str:
    machines = f"{row.machines} × {row.machine}" if row.machine else f"{row.machines} machines"
    time = seconds_text(row.total.value)
    if row.total.low != row.total.high:  # predicted, not measured
        time += f" ({seconds_text(row.total.low)} to {seconds_text(row.total.high)})"
    return f"{row.workers:,} worker{'s' * (row.workers != 1)} on {machines}: {time}, {dollars_text(row.dollars.value)}"
