"""Accuracy of several methods against the seconds that they train, with the Pareto front."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from tenor.reports.drawing.plot import Plot, PlotData, finish
from tenor.reports.drawing.theme import FAINT, INK, SERIES, canvas
from tenor.reports.values import left_out, number, readable, tick

MOST_METHODS = 40
SHORTEST = 0.01  # seconds: shorter times, such as that of the majority class, are drawn here on the logarithmic axis

Rows = Sequence[Mapping[str, Any]]


@dataclass(frozen=True)
class Method:
    """One method: its seconds of training and its accuracy, with the smallest and the largest over seeds."""

    name: str
    seconds: float
    accuracy: float
    low: float
    high: float


def accuracy_against_seconds(rows: Rows) -> Plot | None:
    """Plot the mean accuracy over seeds against the median seconds of training."""
    found = [method for row in rows if (method := _method(row)) is not None]
    if not found:
        return None
    shown = found[:MOST_METHODS]
    front = not_beaten(shown)
    with canvas(11.2, 4.4) as figure:
        axes = figure.subplots()
        axes.plot([m.seconds for m in front], [m.accuracy for m in front], color=SERIES[0], linewidth=1.2, zorder=1)
        for method in shown:
            colour = SERIES[0] if method in front else FAINT
            axes.plot([method.seconds] * 2, [method.low, method.high], color=colour, linewidth=1.2, zorder=2)
            axes.plot([method.seconds], [method.accuracy], marker="o", markersize=6, color=colour)
            at = (method.seconds, method.accuracy)
            axes.annotate(tick(method.name, 30), at, (6, 3), textcoords="offset points", fontsize=9, color=INK)
        axes.set(xlabel="seconds of training", ylabel="accuracy", xscale="log")
        axes.margins(x=0.12, y=0.12)
        names = ", ".join(f"{m.name} ({m.seconds:.4g} s, {m.accuracy:.4f})" for m in front)
        words = (
            f"Mean accuracy and range over seeds. Not beaten in both: {names}. The seconds are those of the chosen "
            f"model, without the time to choose its settings.{left_out(len(found), MOST_METHODS, 'methods')}"
        )
        data = [[m.name, m.seconds, m.accuracy, m.low, m.high, m in front] for m in shown]
        head = ["name", "seconds", "accuracy", "low", "high", "Pareto front"]
        return finish(figure, "Accuracy against seconds of training", words, PlotData(head, data), wide=True)


def not_beaten(methods: Sequence[Method]) -> list[Method]:
    """Return the methods to which no other one is at least as fast and more accurate, by rising seconds."""
    front: list[Method] = []
    for method in sorted(methods, key=lambda m: (m.seconds, -m.accuracy)):
        if not front or method.accuracy > front[-1].accuracy:
            front.append(method)
    return front


def _method(row: Mapping[str, Any]) -> Method | None:
    seconds, median = number(row.get("seconds")), number(row.get("accuracy"))
    if seconds is None or median is None or seconds < 0:
        return None
    mean = number(row.get("mean_accuracy"))
    accuracy = median if mean is None else mean
    spread = row.get("spread")
    own = spread.get("accuracy") if isinstance(spread, dict) else None
    ends = [number(own.get(end)) if isinstance(own, dict) else None for end in ("min", "max")]
    low, high = (accuracy if end is None else end for end in ends)
    name = readable(str(row.get("name")))[:60]
    return Method(name, max(seconds, SHORTEST), accuracy, min(low, accuracy), max(high, accuracy))
