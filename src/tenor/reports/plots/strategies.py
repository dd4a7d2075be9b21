"""Strategies beside each other: accuracy over epochs, seconds and bytes, and speed-up and accuracy by workers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from tenor.reports.drawing.plot import Plot, PlotData, finish
from tenor.reports.drawing.theme import FAINT, PAPER, canvas, series_style
from tenor.reports.plots.scaling.overall import CROWDED
from tenor.reports.values import counted, number, numbers, readable, tick

MOST_LINES = 18
_AXES = {"epochs": "epoch", "seconds": "seconds since training began", "bytes": "megabytes sent by the first worker"}

Rows = Sequence[Mapping[str, Any]]
Points = list[tuple[float, float]]


def accuracy_curves(rows: Rows, workers: float) -> Plot | None:
    """Plot validation accuracy against epochs, seconds and bytes: one line per strategy and one for a single worker."""
    named = {_name(row): row for row in rows if row.get("workers") == workers or row.get("name") == "single-1"}
    lines = {name: curves for name, row in list(named.items())[:MOST_LINES] if (curves := _curves(row.get("curve")))}
    if not lines:
        return None
    with canvas(11.2, 3.4) as figure:
        for axes, (over, label) in zip(figure.subplots(1, 3, sharey=True), _AXES.items(), strict=True):
            for place, curves in enumerate(lines.values()):
                if curves[over]:
                    axes.plot(*zip(*curves[over], strict=True), **series_style(place))
            axes.set(xlabel=label, title=f"Against {over}")
            if over == "bytes" and any(curves[over] for curves in lines.values()):
                axes.set_xscale("log")
        handles = [_key(place) for place in range(len(lines))]
        names = [tick(name, 30) for name in lines]
        figure.legend(handles, names, fontsize=9, loc="outside lower center", ncols=min(6, len(lines)))
        last = ", ".join(f"{name} {curves['epochs'][-1][1]:.3f}" for name, curves in lines.items())
        words = f"After the last epoch: {last}. A strategy that sends nothing has no line against bytes."
        data = [
            [name, over, x, y] for name, curves in lines.items() for over, points in curves.items() for x, y in points
        ]
        title = f"Validation accuracy with {counted(workers, 'worker')}"
        return finish(figure, title, words, PlotData(["strategy", "against", "x", "accuracy"], data), wide=True)


def by_workers(rows: Rows, cores: float | None = None) -> Plot | None:
    """Plot speed-up and final test accuracy by the number of workers, one line per strategy.

    Speed-ups with more workers than cores are hollow marks beside the line. The original rows come from a cluster.
    """
    names = list(dict.fromkeys(_name(row) for row in rows if row.get("strategy")))[:MOST_LINES]
    found = {name: _by_workers([row for row in rows if _name(row) == name]) for name in names}
    lines = {name: points for name, points in found.items() if points["test_accuracy"]}
    if not lines:
        return None
    has_crowded = False
    titles = {"speed_up": "Speed-up", "test_accuracy": "Test accuracy"}
    with canvas(11.2, 3.4) as figure:
        for axes, (key, title) in zip(figure.subplots(1, 2), titles.items(), strict=True):
            for place, (name, points) in enumerate(lines.items()):
                style = {"color": FAINT, "linewidth": 1.2} if name == "original" else series_style(place)
                crowded = [p for p in points[key] if key == "speed_up" and _is_crowded(name, p[0], cores)]
                own = [point for point in points[key] if point not in crowded]
                if own:
                    axes.plot(*zip(*own, strict=True), marker="o", markersize=4, label=tick(name, 30), **style)
                if crowded:
                    hollow = {**style, "linestyle": "none", "markerfacecolor": PAPER}
                    axes.plot(*zip(*crowded, strict=True), marker="o", markersize=4, **hollow)
                    has_crowded = True
            axes.set(title=title, xlabel="workers")
            axes.set_xscale("log", base=2)
            axes.xaxis.set_major_formatter("{x:g}")
        columns = min(7, len(lines))
        figure.legend(*axes.get_legend_handles_labels(), fontsize=9, loc="outside lower center", ncols=columns)
        parts = [
            f"{name} from {p['test_accuracy'][0][1]:.3f} to {p['test_accuracy'][-1][1]:.3f}"
            for name, p in lines.items()
        ]
        words = f"Test accuracy with the fewest and the most workers measured: {', '.join(parts)}."
        words += f" Hollow: {CROWDED} ({cores:g}), so this is not scaling." if has_crowded else ""
        data = [
            [name, key, x, y, _is_crowded(name, x, cores)]
            for name, both in lines.items()
            for key, points in both.items()
            for x, y in points
        ]
        head = ["strategy", "figure", "workers", "value", CROWDED]
        return finish(figure, "Speed-up and accuracy by workers", words, PlotData(head, data), wide=True)


def _is_crowded(name: str, workers: float, cores: float | None) -> bool:
    return cores is not None and workers > cores and name != "original"


def _name(row: Mapping[str, Any]) -> str:
    return readable(str(row.get("strategy")))[:60]


def _curves(curve: Any) -> dict[str, Points]:
    """Return the points (x, accuracy) for each x axis; points with 0 megabytes do not fit a logarithmic axis."""
    if not isinstance(curve, dict) or not all(numbers(curve.get(key)) for key in ("accuracy", "seconds", "bytes")):
        return {}
    accuracy = curve["accuracy"]
    if not accuracy or not len(accuracy) == len(curve["seconds"]) == len(curve["bytes"]):
        return {}
    megabytes = [count / 1e6 for count in curve["bytes"]]
    return {
        "epochs": [(float(epoch), value) for epoch, value in enumerate(accuracy, start=1)],
        "seconds": list(zip(curve["seconds"], accuracy, strict=True)),
        "bytes": [pair for pair in zip(megabytes, accuracy, strict=True) if pair[0] > 0],
    }


def _by_workers(rows: Rows) -> dict[str, Points]:
    def points(key: str) -> Points:
        pairs = [(number(row.get("workers")), number(row.get(key))) for row in rows]
        return sorted((x, y) for x, y in pairs if x is not None and y is not None and x > 0)

    return {key: points(key) for key in ("speed_up", "test_accuracy")}


def _key(place: int) -> Any:
    from matplotlib.lines import Line2D

    return Line2D([], [], **series_style(place))
