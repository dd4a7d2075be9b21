"""Measure contenders fairly: in turns, so that a slow minute of the machine hits all of them alike.

A result is one JSON shape for every scenario:
{"scenario": …, "environment": {…}, "rows": [{"name": …, facts…, figures… (medians), "repeats": n, "spread": {…}}],
"notes": [what a reader should know, …]}; a row may also hold a "curve", by epoch.
"""

from __future__ import annotations

import dataclasses
import statistics
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from tenor import environment
from tenor.errors import UsageError
from tenor.progress import SILENT, Progress


@dataclasses.dataclass(frozen=True)
class Contender:
    """One thing to measure: `run` does the work once and returns figures such as {"samples_per_s": 900.0}.

    Figures named `seconds` are measured around `run` unless it gives its own. `facts` (such as {"workers": 2}) are
    copied into the result as they are.
    """

    name: str
    run: Callable[[], Mapping[str, float]]
    facts: Mapping[str, Any] = dataclasses.field(default_factory=dict)


@dataclasses.dataclass(frozen=True)
class Result:
    """What a scenario measured, and where."""

    scenario: str
    environment: dict[str, Any]
    rows: list[dict[str, Any]]
    notes: list[str] = dataclasses.field(default_factory=list)

    def as_dict(self) -> dict[str, Any]:
        return dataclasses.asdict(self)


def measure(
    scenario: str, contenders: Sequence[Contender], repeats: int = 3, warmups: int = 0, progress: Progress = SILENT
) -> Result:
    """Run every contender `warmups` times unmeasured, then `repeats` times in turns."""
    if repeats < 1 or warmups < 0 or not contenders:
        raise UsageError("nothing to measure", remedy="give at least one contender, one repeat and no negative warm-up")
    figures: list[list[dict[str, float]]] = [[] for _ in contenders]
    progress.start(f"bench {scenario}", len(contenders) * (warmups + repeats), "run")
    try:
        for turn, index in enumerate(turns(len(contenders), warmups + repeats)):
            figure = timed(contenders[index].run)
            if turn >= warmups * len(contenders):
                figures[index].append(figure)
            progress.advance(1, contenders[index].name)
    finally:
        progress.finish()
    rows = [summarise(contender, seen) for contender, seen in zip(contenders, figures, strict=True)]
    return Result(scenario, environment.describe(), rows)


def turns(num_contenders: int, rounds: int) -> list[int]:
    """Round-robin; each round starts one further, so that nobody always follows the same neighbour first."""
    return [(start + place) % num_contenders for start in range(rounds) for place in range(num_contenders)]


def timed(run: Callable[[], Mapping[str, float]]) -> dict[str, float]:
    """The run's figures, with its seconds."""
    began = time.perf_counter()
    figures = run()
    return {"seconds": time.perf_counter() - began, **figures}


def summarise(contender: Contender, figures: Sequence[Mapping[str, float]]) -> dict[str, Any]:
    """Medians beside the name and facts; the spread of each figure, with the values in the order measured."""
    columns = {name: [figure[name] for figure in figures] for name in figures[0]}
    return {
        "name": contender.name,
        **contender.facts,
        **{name: statistics.median(values) for name, values in columns.items()},
        "repeats": len(figures),
        "spread": {name: spread(values) for name, values in columns.items()},
    }


def spread(values: Sequence[float]) -> dict[str, Any]:
    """Smallest, quartiles and largest; of few values the quartiles interpolate between them."""
    low, _, high = statistics.quantiles(values, n=4, method="inclusive") if len(values) > 1 else [values[0]] * 3
    return {"min": min(values), "q1": low, "q3": high, "max": max(values), "values": list(values)}


def table(result: Result) -> tuple[list[str], list[list[Any]]]:
    """Head and rows for a person: facts, then each figure's median, with its range where there is one."""
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
