"""Speed-up and efficiency as they are usually defined, computed turn by turn from measured throughputs."""

from __future__ import annotations

import statistics
from collections.abc import Sequence
from typing import Any

from tenor.bench.measuring import spread
from tenor.bench.scaling_tables import BASE, STRONG, UNTIL, line_of

Row = dict[str, Any]


def add_scaling(rows: Sequence[Row]) -> None:
    """Add `speed_up` and `efficiency` with their spreads to rows that can show scaling.

    A row is compared with the base row of its stage, strategy and network, run by run, because runs of one turn follow
    each other and see the same machine. With n workers in the base row and N in this one:

        speed-up S(N) = throughput(N) / throughput(n),  efficiency E(N) = S(N) × n / N

    For strong scaling this is S = T(n) / T(N) of the same work. For weak scaling, where the work grows by N / n, it is
    the scaled speed-up, and E = T(n) / T(N).
    """
    bases = {line_of(row): row for row in rows if row["kind"] == BASE}
    for row in rows:
        base = bases.get(line_of(row))
        if base is None or row["kind"] == UNTIL or row["shares_cores"] or base["shares_cores"]:
            continue
        ups = speed_ups(_turns(row), _turns(base))
        efficiencies = [up * base["workers"] / row["workers"] for up in ups]
        for name, values in (("speed_up", ups), ("efficiency", efficiencies)):
            row[name] = statistics.median(values)
            row["spread"][name] = spread(values)


def speed_ups(rates: Sequence[float], base: Sequence[float]) -> list[float]:
    """The speed-up of each turn; where one of the two has fewer turns, of those that both have."""
    return [rate / other for rate, other in zip(rates, base, strict=False)]


def _turns(row: Row) -> list[float]:
    values: list[float] = row["spread"]["samples_per_s"]["values"]
    return values


def join_bases(rows: Sequence[Row]) -> list[Row]:
    """The rows of several results as those of one: only the base row with the fewest workers stays a base row.

    The others divide the same work among more workers, so they become rows of strong scaling. Of rows with the same
    name and network, the first is kept.
    """
    fewest: dict[tuple[str, str, str], Row] = {}
    for row in rows:
        if row["kind"] == BASE:
            key = line_of(row)
            fewest[key] = min(fewest.get(key, row), row, key=lambda one: one["workers"])
    first: dict[tuple[str, Any], Row] = {}
    for row in rows:
        is_base = row["kind"] != BASE or row is fewest[line_of(row)]
        first.setdefault((row["name"], row.get("network")), row if is_base else {**row, "kind": STRONG})
    return list(first.values())
