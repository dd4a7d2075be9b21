"""Convergence by the number of workers: validation accuracy over epochs and seconds, and the way to a threshold."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from tenor.reports.drawing.plot import Plot, PlotData, finish
from tenor.reports.drawing.theme import canvas, series_style
from tenor.reports.values import counted, left_out, number, numbers, readable, sentence, tick

MOST_PANELS = 9
MOST_COUNTS = 9
_AXES = {"epochs": "epoch", "seconds": "seconds since training began"}
_WAYS = ("epochs_to_", "seconds_to_")  # beginnings of the figures that say when a threshold was reached

Rows = Sequence[Mapping[str, Any]]
Points = list[tuple[float, float]]
Panels = dict[str, dict[float, Points]]  # strategy → number of workers → (x, accuracy)


def convergence(rows: Rows, over: str) -> Plot | None:
    """Plot validation accuracy over "epochs" or "seconds": one panel per strategy, one line per number of workers."""
    panels = {name: lines for name, lines in _panels(rows, over).items() if len(lines) > 1}
    if not panels:
        return None
    shown = {name: dict(sorted(lines.items())[:MOST_COUNTS]) for name, lines in list(panels.items())[:MOST_PANELS]}
    counts = sorted({count for lines in shown.values() for count in lines})[:MOST_COUNTS]
    columns = min(3, len(shown))
    height = -(-len(shown) // columns)
    with canvas(11.2, 0.6 + 2.8 * height) as figure:
        grid = figure.subplots(height, columns, sharey=True, squeeze=False).ravel()
        for axes, (name, lines) in zip(grid, shown.items(), strict=False):
            for count, points in lines.items():
                if count in counts:
                    axes.plot(*zip(*points, strict=True), **series_style(counts.index(count)))
            axes.set(title=tick(name, 40), xlabel=_AXES[over])
        for axes in grid[len(shown) :]:
            axes.set_visible(False)
        labels = [counted(count, "worker") for count in counts]
        keys = [_key(place) for place in range(len(counts))]
        figure.legend(keys, labels, fontsize=9, loc="outside lower center", ncols=len(counts))
        parts = [f"{name} {_ends(lines)}" for name, lines in shown.items()]
        words = f"Validation accuracy at the end, by workers: {'; '.join(parts)}."
        words += left_out(len(panels), MOST_PANELS, "strategies")
        data = [
            [name, count, x, y] for name, lines in shown.items() for count, points in lines.items() for x, y in points
        ]
        head = ["strategy", "workers", over, "validation accuracy"]
        return finish(figure, f"Convergence by workers over {over}", words, PlotData(head, data), wide=True)


def thresholds(rows: Rows) -> list[Plot]:
    """Plot each figure such as `seconds_to_loss` by the number of workers, one line per strategy."""
    keys = dict.fromkeys(key for row in rows for key in row if key.startswith(_WAYS))
    return [plot for key in list(keys)[:4] if (plot := _threshold(rows, str(key))) is not None]


def _threshold(rows: Rows, key: str) -> Plot | None:
    lines: dict[str, Points] = {}
    for row in rows:
        workers, value = number(row.get("workers")), number(row.get(key))
        if workers is not None and value is not None:
            lines.setdefault(readable(str(row.get("strategy") or ""))[:60], []).append((workers, value))
    if not lines:
        return None
    name, _, goal = readable(key)[:60].partition("_to_")
    title = f"{name.capitalize()} until {goal.replace('_', ' ')}"
    with canvas(5.4, 3.6) as figure:
        axes = figure.subplots()
        for place, (strategy, points) in enumerate(list(lines.items())[:MOST_PANELS]):
            style = {"marker": "o", "markersize": 4, "label": tick(strategy, 40), **series_style(place)}
            axes.plot(*zip(*sorted(points), strict=True), **style)
        axes.set(xlabel="workers", ylabel=name, ylim=(0, None))
        if len(lines) > 1:
            axes.legend(fontsize=9)
        parts = [f"{s} {y:.4g} with {counted(x, 'worker')}".strip() for s, points in lines.items() for x, y in points]
        data = [[strategy, x, y] for strategy, points in lines.items() for x, y in points]
        return finish(figure, title, sentence(", ".join(parts)), PlotData(["strategy", "workers", name], data))


def _panels(rows: Rows, over: str) -> Panels:
    panels: Panels = {}
    alone: dict[float, Points] = {}
    for row in rows:
        workers, points = number(row.get("workers")), _curve(row.get("curve"), over)
        if workers is None or not points:
            continue
        name = readable(str(row.get("strategy") or "training"))[:60]
        if name == "single":
            alone = {workers: points}
        else:
            panels.setdefault(name, {})[workers] = points
    return {name: alone | lines for name, lines in panels.items()}


def _curve(curve: Any, over: str) -> Points:
    if not isinstance(curve, dict) or not numbers(curve.get("accuracy")):
        return []
    accuracy = curve["accuracy"]
    if over == "epochs":
        return [(float(epoch), value) for epoch, value in enumerate(accuracy, start=1)]
    seconds = curve.get("seconds")
    return list(zip(seconds, accuracy, strict=False)) if isinstance(seconds, list) and numbers(seconds) else []


def _ends(lines: Mapping[float, Points]) -> str:
    return ", ".join(f"{points[-1][1]:.3f} with {count:g}" for count, points in lines.items())


def _key(place: int) -> Any:
    from matplotlib.lines import Line2D

    return Line2D([], [], **series_style(place))
