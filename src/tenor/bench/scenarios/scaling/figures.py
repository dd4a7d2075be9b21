"""Speed-up and efficiency as they are usually defined, computed turn by turn from measured throughputs."""

from __future__ import annotations

import statistics
from collections.abc import Sequence
from typing import Any

from tenor.bench.measuring import spread
from tenor.bench.scaling_tables import BASE, UNTIL
from tenor.bench.settings import BenchSettings

Row = dict[str, Any]


def add_scaling(rows: Sequence[Row]) -> None:
    """Add `speed_up` and `efficiency` with their spreads to rows that can show scaling.

    A row is compared with the base row of its stage and strategy, run by run, because runs of one turn follow each
    other and see the same machine. With n workers in the base row and N in this one:

        speed-up S(N) = throughput(N) / throughput(n),  efficiency E(N) = S(N) × n / N

    For strong scaling this is S = T(n) / T(N) of the same work. For weak scaling, where the work grows by N / n, it is
    the scaled speed-up, and E = T(n) / T(N).
    """
    bases = {(row["stage"], row["strategy"]): row for row in rows if row["kind"] == BASE}
    for row in rows:
        base = bases.get((row["stage"], row["strategy"]))
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


def describe_thresholds(settings: BenchSettings, rows: Sequence[Row]) -> list[str]:
    """A sentence about what the rows of the kind `until` trained for, and which of them did not get there."""
    asked = []
    if settings.until_loss:
        asked.append(f"a mean training loss of at most {settings.until_loss:g} in an epoch")
    if settings.until_accuracy:
        asked.append(f"a validation accuracy of at least {settings.until_accuracy:g}")
    if not asked:
        return []
    missed = [row["name"] for row in rows if row["kind"] == UNTIL and row["epochs_to_threshold"] == float("inf")]
    ending = f" Not reached within {settings.epochs} epochs: {', '.join(missed)}." if missed else ""
    return [f"The threshold is {' and '.join(asked)}, looked at after each epoch.{ending}"]
