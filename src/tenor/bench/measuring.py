"""Measures contenders in turns, so that a slow phase of the machine affects all of them equally.

The result of every scenario has the same JSON form, which `tenor.bench.results` describes and checks.
"""

from __future__ import annotations

import dataclasses
import statistics
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from tenor import environment
from tenor.bench.journal import NO_JOURNAL, Journal
from tenor.bench.results import Result
from tenor.errors import UsageError
from tenor.progress import SILENT, Progress


@dataclasses.dataclass(frozen=True)
class Contender:
    """One program or setting to measure.

    Attributes:
        name: Name of the row in the result.
        run: Does the work once and returns figures such as {"samples_per_s": 900.0}. The figure `seconds` is measured
            around the call, unless `run` returns its own.
        facts: Values that are copied into the row, such as {"workers": 2}.
    """

    name: str
    run: Callable[[], Mapping[str, float]]
    facts: Mapping[str, Any] = dataclasses.field(default_factory=dict)


def measure(
    scenario: str,
    contenders: Sequence[Contender],
    repeats: int = 3,
    warmups: int = 0,
    progress: Progress = SILENT,
    journal: Journal = NO_JOURNAL,
) -> Result:
    """Run the contenders in turns and summarise their figures.

    Args:
        scenario: Name of the scenario.
        contenders: What to measure; one row each.
        repeats: Measured runs per contender, at least 1.
        warmups: Runs per contender before the measured ones.
        progress: Receives one step per run.
        journal: Keeps the figures of finished runs, so that a stopped measurement continues after them.

    Raises:
        UsageError: There is no contender or no repeat, or `warmups` is negative.
    """
    if repeats < 1 or warmups < 0 or not contenders:
        raise UsageError(
            f"nothing to measure: {len(contenders)} contenders, {repeats} repeats, {warmups} warm-ups",
            remedy="use at least one contender and one repeat, and 0 or more warm-ups",
        )
    figures: list[list[dict[str, float]]] = [[] for _ in contenders]
    progress.start(f"bench {scenario}", len(contenders) * (warmups + repeats), "run")
    try:
        for turn, index in enumerate(turns(len(contenders), warmups + repeats)):
            name = contenders[index].name
            figure = journal.past(turn, name) or journal.add(name, timed(contenders[index].run))
            if turn >= warmups * len(contenders):
                figures[index].append(figure)
            progress.advance(1, name)
    finally:
        progress.finish()
    rows = [summarise(contender, seen) for contender, seen in zip(contenders, figures, strict=True)]
    return Result(scenario, {**environment.describe(), "commit": environment.commit()}, rows)


def turns(num_contenders: int, rounds: int) -> list[int]:
    """Return the round-robin order of runs. Each round starts one contender later, so that none is always the first."""
    return [(start + place) % num_contenders for start in range(rounds) for place in range(num_contenders)]


def timed(run: Callable[[], Mapping[str, float]]) -> dict[str, float]:
    """Run once and return the figures, with the elapsed seconds."""
    began = time.perf_counter()
    figures = run()
    return {"seconds": time.perf_counter() - began, **figures}


def summarise(contender: Contender, figures: Sequence[Mapping[str, float]]) -> dict[str, Any]:
    """Return a row: name, facts, the median of each figure, and the spread with the values in the order measured."""
    columns = {name: [figure[name] for figure in figures] for name in figures[0]}
    return {
        "name": contender.name,
        **contender.facts,
        **{name: statistics.median(values) for name, values in columns.items()},
        "repeats": len(figures),
        "spread": {name: spread(values) for name, values in columns.items()},
    }


def spread(values: Sequence[float]) -> dict[str, Any]:
    """Return the minimum, the quartiles (interpolated) and the maximum, with the values."""
    low, _, high = statistics.quantiles(values, n=4, method="inclusive") if len(values) > 1 else [values[0]] * 3
    return {"min": min(values), "q1": low, "q3": high, "max": max(values), "values": list(values)}


def table(result: Result) -> tuple[list[str], list[list[Any]]]:
    """Return the header and the rows of a table: facts, then the median of each figure and, with repeats, its range."""
    facts = _union(_facts(row) for row in result.rows)
    figures = _union(row["spread"] for row in result.rows)
    has_range = any(row["repeats"] > 1 for row in result.rows)
    head = ["name", *facts, *(title for name in figures for title in (name, *(["min–max"] * has_range)))]
    rows = []
    for row in result.rows:
        cells = [row["name"], *(row.get(name) for name in facts)]
        for name in figures:
            cells += [row.get(name), *([_span(row["spread"].get(name))] * has_range)]
        rows.append(cells)
    return head, rows


def _facts(row: Mapping[str, Any]) -> list[str]:
    return [name for name in row if name not in row["spread"] and name not in ("name", "repeats", "spread", "curve")]


def _union(names: Any) -> list[str]:
    return list(dict.fromkeys(name for some in names for name in some))


def _span(spread: Mapping[str, float] | None) -> str:
    return f"{spread['min']:.4g}–{spread['max']:.4g}" if spread else "–"
