"""A plan from a table of finished runs: what they cost, which is cheapest and fastest, and what other counts do."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from decimal import Decimal
from pathlib import Path

from tenor.planning.costs.amdahl import Amdahl, fit_amdahl
from tenor.planning.inputs.prices import Machine, find_machine, read_prices, to_cents
from tenor.planning.inputs.runs_table import TableRun
from tenor.planning.quantities import SPAN
from tenor.planning.rows import Interval, PlanRow, mark_front
from tenor.planning.settings import PlanSettings
from tenor.wording import dollars_text, seconds_text

FAR = 4.0  # times the largest measured count; beyond is marked as extrapolated


def plan_table(runs: Sequence[TableRun], settings: PlanSettings, asked: Sequence[int] = ()) -> tuple[PlanRow, ...]:
    """The runs as rows with their dollars to the cent, then predictions for other counts.

    Args:
        runs: The table.
        settings: Where the prices come from.
        asked: Workers to predict, by Amdahl's law, for every machine with runs of at least two counts. A machine with
            GPUs has a worker on each of them.
    """
    prices = read_prices(Path(settings.prices) if settings.prices else None)
    rows = [_measured_row(run, _price(run, prices), _base(run, runs)) for run in runs]
    for name in dict.fromkeys(run.machine for run in runs):
        own = [run for run in runs if run.machine == name]
        law = fit_amdahl([(run.count, run.seconds) for run in own])
        if law is not None:
            machine = _price(own[0], prices)
            counts = dict.fromkeys(-(-workers // _workers(machine)) for workers in asked)
            unknown = [count for count in counts if count not in {run.count for run in own}]
            rows += [_predicted_row(law, count, own, machine) for count in unknown]
    return mark_front(rows)


def describe_table(rows: Sequence[PlanRow], num_measured: int) -> list[str]:
    """Sentences that name the cheapest and the fastest of the measured runs."""
    measured = rows[:num_measured]
    cheapest = min(measured, key=lambda row: row.dollars.value)
    fastest = min(measured, key=lambda row: row.total.value)

    def name(row: PlanRow) -> str:
        price, time = dollars_text(row.dollars.value), seconds_text(row.total.value)
        return f"{row.machines} × {row.machine} ({price}, {time})"

    return [f"Cheapest: {name(cheapest)}.", f"Fastest: {name(fastest)}."]


def _price(run: TableRun, prices: Mapping[str, Machine]) -> Machine:
    if run.dollars_per_hour is not None:
        known = prices.get(run.machine, Machine(run.machine, run.dollars_per_hour, 1))
        return replace(known, dollars_per_hour=run.dollars_per_hour)
    return find_machine(dict(prices), run.machine)


def _workers(machine: Machine) -> int:
    """The workers of one machine: one for each GPU; without GPUs, the machine counts as one."""
    return max(1, machine.gpus)


def _base(run: TableRun, runs: Sequence[TableRun]) -> TableRun:
    """The run with the fewest machines of the same kind, which efficiency is relative to."""
    return min((one for one in runs if one.machine == run.machine), key=lambda one: one.count)


def _measured_row(run: TableRun, machine: Machine, base: TableRun) -> PlanRow:
    cost = float(to_cents(machine.dollars(run.count, run.seconds)))
    efficiency = base.seconds * base.count / (run.seconds * run.count)
    accuracy = None if run.accuracy is None else _exact(run.accuracy)
    return _row(machine, run.count, _exact(run.seconds), _exact(cost), _exact(efficiency), accuracy)


def _predicted_row(law: Amdahl, count: int, runs: Sequence[TableRun], machine: Machine) -> PlanRow:
    base, largest = min(runs, key=lambda run: run.count), max(run.count for run in runs)
    sigma = math.hypot(law.error, 0.05 * abs(math.log2(count / largest)))
    time = _unsure(law.seconds(count), sigma)
    ends = [machine.dollars(count, seconds) for seconds in (time.value, time.low, time.high)]
    row = _row(
        machine,
        count,
        time,
        Interval(*(float(to_cents(Decimal(end))) for end in ends)),
        _unsure(base.seconds * base.count / (count * time.value), sigma),
        None,
    )
    far = (f"{count:,} machines, measured {largest:,}",) if count > FAR * largest else ()
    return replace(row, extrapolated=far, strategy="Amdahl's law")


def _row(
    machine: Machine, count: int, time: Interval, cost: Interval, efficiency: Interval, accuracy: Interval | None
) -> PlanRow:
    return PlanRow(
        workers=count * _workers(machine),
        machine=machine.name,
        machines=count,
        hosts=count,
        strategy="measured",
        batch_size=None,
        epochs=None,
        step=None,
        epoch=None,
        total=time,
        dollars=cost,
        efficiency=efficiency,
        accuracy=accuracy,
        parts=None,
        prepare=None,
        extrapolated=(),
    )


def _exact(value: float) -> Interval:
    return Interval(value, value, value)


def _unsure(value: float, sigma: float) -> Interval:
    factor = math.exp(SPAN * sigma)
    return Interval(value, value / factor, value * factor)
