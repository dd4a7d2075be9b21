"""Convergence by the number of workers: validation accuracy over epochs and seconds, and the way to a threshold."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from tenor.reports.drawing.plot import Plot, PlotData, finish
from tenor.reports.drawing.theme import PAPER, canvas, series_style
from tenor.reports.plots.scaling.overall import CROWDED, line_name
from tenor.reports.values import counted, left_out, number, numbers, readable, sentence, tick

MOST_PANELS = 9
MOST_COUNTS = 9
_AXES = {"epochs": "epoch", "seconds": "seconds since training began"}
_WAYS = ("epochs_to_", "seconds_to_")  # beginnings of the figures that say when a threshold was reached

Rows = Sequence[Mapping[str, Any]]
Points = list[tuple[float, float]]
Lines = dict[float, Points]  # number of workers → (x, accuracy)


def convergence(rows: Rows) -> list[Plot]:
    """Plot validation accuracy over epochs and seconds: a panel per strategy, a line per number of workers.

    One strategy gets a single plot with a panel for each axis.
    """
    panels = {over: _panels(rows, over) for over in _AXES}
    if len(panels["epochs"]) == 1:
        titled = {f"Over {over}": (over, lines) for over, found in panels.items() for lines in found.values()}
        return [_draw(titled, "Convergence by workers")]
    return [
        _draw({name: (over, lines) for name, lines in found.items()}, f"Convergence by workers over {over}")
        for over, found in panels.items()
        if found
    ]


def _draw(panels: Mapping[str, tuple[str, Lines]], title: str) -> Plot:
    shown = dict(list(panels.items())[:MOST_PANELS])
    counts = sorted({count for _, lines in shown.values() for count in lines})[:MOST_COUNTS]
    columns = min(3, len(shown))
    height = -(-len(shown) // columns)
    with canvas(11.2, 0.6 + 2.8 * height) as figure:
        grid = figure.subplots(height, columns, sharey=True, squeeze=False).ravel()
        for axes, (name, (over, lines)) in zip(grid, shown.items(), strict=False):
            for count in counts:
                if count in lines:
                    axes.plot(*zip(*lines[count], strict=True), **series_style(counts.index(count)))
            axes.set(title=tick(name, 40), xlabel=_AXES[over])
            if over == "epochs":
                axes.xaxis.get_major_locator().set_params(integer=True)
        for axes in grid[len(shown) :]:
            axes.set_visible(False)
        keys, labels = [_key(place) for place in range(len(counts))], [counted(count, "worker") for count in counts]
        figure.legend(keys, labels, fontsize=9, loc="outside lower center", ncols=len(counts))
        words = (
            f"Validation accuracy at the end, by workers: {_ends(shown)}.{left_out(len(panels), MOST_PANELS, 'panels')}"
        )
        data = [
            [name, count, over, x, y]
            for name, (over, lines) in shown.items()
            for count, points in lines.items()
            for x, y in points
        ]
        head = ["panel", "workers", "axis", "x", "validation accuracy"]
        return finish(figure, title, words, PlotData(head, data), wide=True)


def _ends(panels: Mapping[str, tuple[str, Lines]]) -> str:
    parts = {
        name: ", ".join(f"{points[-1][1]:.3f} with {count:g}" for count, points in lines.items())
        for name, (_, lines) in panels.items()
    }
    same = set(parts.values())
    return same.pop() if len(same) == 1 else "; ".join(f"{name} {words}" for name, words in parts.items())


def _panels(rows: Rows, over: str) -> dict[str, Lines]:
    """Return the lines of each strategy that was measured with several numbers of workers."""
    panels: dict[str, Lines] = {}
    alone: Lines = {}
    for row in rows:
        workers, points = number(row.get("workers")), _curve(row.get("curve"), over)
        if workers is None or not points:
            continue
        name = line_name(row) or "training"
        if name == "single":
            alone = {workers: points}
        else:
            panels.setdefault(name, {})[workers] = points
    every = {name: dict(sorted((alone | lines).items())) for name, lines in panels.items()}
    return {name: lines for name, lines in every.items() if len(lines) > 1}


def _curve(curve: Any, over: str) -> Points:
    if not isinstance(curve, dict) or not numbers(curve.get("accuracy")):
        return []
    accuracy = curve["accuracy"]
    if over == "epochs":
        return [(float(epoch), value) for epoch, value in enumerate(accuracy, start=1)]
    return list(zip(curve["seconds"], accuracy, strict=False)) if numbers(curve.get("seconds")) else []


def thresholds(rows: Rows) -> list[Plot]:
    """Plot each figure such as `seconds_to_loss` by the number of workers, one line per strategy."""
    keys = dict.fromkeys(str(key) for row in rows for key in row if str(key).startswith(_WAYS))
    return [plot for key in list(keys)[:4] if (plot := _threshold(rows, key)) is not None]


def _threshold(rows: Rows, key: str) -> Plot | None:
    lines: dict[str, Points] = {}
    crowded: Points = []
    for row in rows:
        workers, value = number(row.get("workers")), number(row.get(key))
        if workers is not None and value is not None:
            lines.setdefault(line_name(row), []).append((workers, value))
            crowded += [(workers, value)] if row.get("shares_cores") is True else []
    if not lines:
        return None
    name, _, goal = readable(key)[:60].partition("_to_")
    counts = sorted({x for points in lines.values() for x, _ in points})
    with canvas(5.4, 3.6) as figure:
        axes = figure.subplots()
        for place, (strategy, points) in enumerate(list(lines.items())[:MOST_PANELS]):
            style = {"marker": "o", "markersize": 4, "label": tick(strategy, 40), **series_style(place)}
            if own := sorted(point for point in points if point not in crowded):
                axes.plot(*zip(*own, strict=True), **style)
            if beside := [point for point in points if point in crowded]:
                hollow = {**style, "linestyle": "none", "markerfacecolor": PAPER, "label": CROWDED}
                axes.plot(*zip(*beside, strict=True), **hollow)
        axes.set(xlabel="workers", ylabel=name, ylim=(0, None))
        if len(counts) <= 8:
            axes.set_xticks(counts, [f"{count:g}" for count in counts])
        if len(lines) > 1 or crowded:
            axes.legend(fontsize=9)
        parts = [f"{s} {y:.4g} with {counted(x, 'worker')}".strip() for s, points in lines.items() for x, y in points]
        data = [[strategy, x, y, (x, y) in crowded] for strategy, points in lines.items() for x, y in points]
        words = sentence(", ".join(parts)) + (f" Hollow: {CROWDED}, so this is not scaling." if crowded else "")
        title = f"{name.capitalize()} until {goal.replace('_', ' ')}"
        return finish(figure, title, words, PlotData(["strategy", "workers", name, CROWDED], data))


def _key(place: int) -> Any:
    from matplotlib.lines import Line2D

    return Line2D([], [], **series_style(place))
