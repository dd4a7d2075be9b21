"""Plots of a plan: predicted time and efficiency with their intervals, and where a step goes, by workers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from tenor.reports.drawing.plot import Plot, PlotData, finish
from tenor.reports.drawing.theme import FAINT, PAPER, SERIES, canvas, label_logarithms, series_style
from tenor.reports.values import counted, left_out, number, readable, tick
from tenor.wording import seconds_text

MOST_LINES = 6
MOST_POINTS = 64
_PARTS = {"compute_seconds": "compute", "exchange_seconds": "exchange", "update_seconds": "update"}

Rows = Sequence[Mapping[str, Any]]
Point = tuple[float, float, float, float, bool]  # workers, value, low, high, whether it is extrapolated


def time_by_workers(rows: Rows) -> Plot | None:
    """Plot the total time and the efficiency by workers: a line per machine, a band for the interval."""
    machines = dict.fromkeys(str(row.get("machine")) for row in rows)
    lines = {name: _points([row for row in rows if str(row.get("machine")) == name], "seconds") for name in machines}
    lines = {name: points for name, points in lines.items() if points}
    if not lines:
        return None
    shown = dict(list(lines.items())[:MOST_LINES])
    unit, size = _unit([point[1] for points in shown.values() for point in points])
    efficient = {
        name: _points([row for row in rows if str(row.get("machine")) == name], "efficiency") for name in shown
    }
    with canvas(11.2, 3.8) as figure:
        times, efficiencies = figure.subplots(1, 2)
        for place, (name, points) in enumerate(shown.items()):
            timed = [(n, value / size, low / size, high / size, far) for n, value, low, high, far in points]
            for axes, line in ((times, timed), (efficiencies, efficient[name])):
                _draw(axes, line, {**series_style(place), "label": tick(readable(name), 30)})
        efficiencies.axhline(1.0, color=FAINT, linestyle="--", linewidth=1.2)
        times.set(title=f"Total time ({unit})", xlabel="workers", yscale="log")
        efficiencies.set(title="Efficiency", xlabel="workers", ylim=(0, None))
        label_logarithms(times.yaxis)
        for axes in (times, efficiencies):
            axes.set_xscale("log", base=2)
            axes.xaxis.set_major_formatter("{x:g}")
        if len(shown) > 1:
            figure.legend(*times.get_legend_handles_labels(), fontsize=9, loc="outside lower center", ncols=3)
        words = " ".join(_words(name, points) for name, points in shown.items())
        words += " The band should hold 9 of 10 measurements. Hollow: beyond 4 times what was measured."
        words += left_out(len(lines), MOST_LINES, "machines")
        data = [_line_of_data(name, point, efficient[name]) for name, points in shown.items() for point in points]
        head = ["machine", "workers", "seconds", "low", "high", "efficiency", "efficiency low", "efficiency high"]
        head.append("extrapolated")
        return finish(figure, "Predicted time and efficiency by workers", words, PlotData(head, data), wide=True)


def _line_of_data(name: str, time: Point, efficiencies: Sequence[Point]) -> list[Any]:
    workers, *seconds, is_far = time
    found = next((point[1:4] for point in efficiencies if point[0] == workers), ("", "", ""))
    return [name, workers, *seconds, *found, is_far]


def _unit(seconds: Sequence[float]) -> tuple[str, float]:
    """The unit in which typical times are between 1 and 100."""
    middle = sorted(seconds)[len(seconds) // 2]
    units = (("days", 86_400.0), ("hours", 3600.0), ("minutes", 60.0))
    return next(((name, size) for name, size in units if middle >= 2 * size), ("seconds", 1.0))


def _draw(axes: Any, points: Sequence[Point], style: dict[str, Any]) -> None:
    if not points:
        return
    workers, values, lows, highs, far = zip(*points, strict=True)
    axes.fill_between(workers, lows, highs, color=style["color"], alpha=0.18, linewidth=0)
    axes.plot(workers, values, **style)
    for x, y, is_far in zip(workers, values, far, strict=True):
        fill = PAPER if is_far else style["color"]
        axes.plot([x], [y], marker="o", markersize=5, color=style["color"], markerfacecolor=fill)


def _points(rows: Rows, key: str) -> list[Point]:
    found = []
    for row in rows[:MOST_POINTS]:
        workers, value, low, high = (number(row.get(name)) for name in ("workers", key, f"{key}_low", f"{key}_high"))
        if workers and value and low and high and workers > 0 and 0 < low <= value <= high:
            found.append((workers, value, low, high, row.get("extrapolated") is True))
    return sorted(found)


def _words(name: str, points: Sequence[Point]) -> str:
    ends = [points[0], points[-1]] if len(points) > 1 else points[:1]
    parts = [
        f"{seconds_text(value)} ({seconds_text(low)} to {seconds_text(high)}) with {counted(workers, 'worker')}"
        for workers, value, low, high, _ in ends
    ]
    return f"{readable(name)[:40]}: {', '.join(parts)}."


def parts_by_workers(rows: Rows) -> Plot | None:
    """Plot where a predicted step goes: compute, exchange and update, stacked, for the first machine."""
    first = rows[0].get("machine") if rows else None
    own = [row for row in rows if row.get("machine") == first][:MOST_POINTS]
    found = [(number(row.get("workers")), [number(row.get(key)) for key in _PARTS]) for row in own]
    bars = [
        (workers, [max(0.0, value) for value in values if value is not None]) for workers, values in found if workers
    ]
    bars = [(workers, values) for workers, values in bars if len(values) == len(_PARTS)]
    if not bars:
        return None
    with canvas(11.2, 3.4) as figure:
        axes = figure.subplots()
        bottoms = [0.0] * len(bars)
        for place, name in enumerate(_PARTS.values()):
            heights = [1e3 * values[place] for _, values in bars]
            axes.bar(range(len(bars)), heights, bottom=bottoms, color=SERIES[place], width=0.6, label=name)
            bottoms = [low + height for low, height in zip(bottoms, heights, strict=True)]
        axes.set_xticks(range(len(bars)), [f"{workers:g}" for workers, _ in bars])
        axes.set(xlabel="workers", ylabel="milliseconds")
        axes.grid(False, axis="x")
        figure.legend(*axes.get_legend_handles_labels(), fontsize=9, loc="outside lower center", ncols=3)
        words = "; ".join(
            f"{counted(workers, 'worker')}: "
            + ", ".join(f"{name} {seconds_text(value)}" for name, value in zip(_PARTS.values(), values, strict=True))
            for workers, values in (bars[0], bars[-1])
        )
        words = f"{words}. Exchange and compute may overlap, so a step can be shorter than the sum."
        data = [[workers, *values] for workers, values in bars]
        head = ["workers", *(f"{name} seconds" for name in _PARTS.values())]
        title = f"Where a predicted step goes ({readable(str(first))[:40]})"
        return finish(figure, title, words, PlotData(head, data), wide=True)
