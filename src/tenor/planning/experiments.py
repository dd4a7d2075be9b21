"""Which one-minute experiment would narrow the interval of a row most."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass

from tenor.planning.quantities import SPAN, Quantity
from tenor.planning.rows import PlanRow


@dataclass(frozen=True)
class Experiment:
    """What an experiment finds out: the quantities, the error they have afterwards, and how to do it."""

    quantities: tuple[str, ...]
    error: float
    text: str


EXPERIMENTS = (
    Experiment(
        ("compute", "update", "load", "stragglers"),
        0.02,
        "measure one worker for longer: `tenor plan --measure DATA --out measured.json`",
    ),
    Experiment(("machine",), 0.05, "run `tenor plan --measure` on one {machine} instead of this machine"),
    Experiment(
        ("bandwidth", "latency", "message", "overlap"),
        0.05,
        "train for one minute on two machines (`--max-seconds 60`), or on test hosts with the measured bandwidth: "
        "`tenor bench scaling --stages train --workers 1,2 --strategies {strategy} --network BANDWIDTH,LATENCY`",
    ),
    Experiment(
        ("memory", "memory_latency", "by_rows", "crowded", "noise_scale"),
        0.3,
        "train with two workers of one machine for one minute and plan from that run: `tenor train DATA --out RUN "
        "--workers 2 --max-seconds 60`. It compares the workers' gradients and times their exchange",
    ),
    Experiment(
        ("server",),
        0.1,
        "measure the parameter server: `tenor bench scaling --stages train --strategies async --workers 2`",
    ),
    Experiment(
        ("model",),
        0.05,
        "train for one minute with as many workers as you have, and plan from that run: `tenor train DATA --out RUN "
        "--workers auto --max-seconds 60`",
    ),
)


@dataclass(frozen=True)
class Advice:
    """The most useful experiment, and the interval before and after it, as a factor on each side."""

    text: str
    before: float
    after: float
    causes: tuple[tuple[str, float], ...]  # the quantities that cause most of the variance, with their shares


def advise(row: PlanRow, shares: Mapping[str, float], quantities: Mapping[str, Quantity]) -> Advice | None:
    """Find the experiment that narrows the interval of a row most; None if nothing is uncertain.

    Args:
        row: The row in question.
        shares: The part of the variance of its seconds that each quantity causes.
        quantities: The quantities with their present errors.
    """
    if not shares or not math.isfinite(row.total.high) or row.total.high <= row.total.value:
        return None
    variance = (math.log(row.total.high / row.total.value) / SPAN) ** 2
    left = {one: variance * (1.0 - _removed(one, shares, quantities)) for one in EXPERIMENTS}
    best = min(left, key=lambda one: left[one])
    if left[best] > 0.98 * variance:
        return None
    causes = tuple(sorted(shares.items(), key=lambda item: -item[1])[:3])
    text = best.text.format(machine=row.machine, strategy=row.strategy)
    return Advice(text, math.exp(SPAN * math.sqrt(variance)), math.exp(SPAN * math.sqrt(left[best])), causes)


def _removed(one: Experiment, shares: Mapping[str, float], quantities: Mapping[str, Quantity]) -> float:
    """The part of the variance that disappears."""
    total = 0.0
    for name in one.quantities:
        sigma = quantities[name].sigma if name in quantities else 0.0
        if sigma > one.error:
            total += shares.get(name, 0.0) * (1.0 - (one.error / sigma) ** 2)
    return total
