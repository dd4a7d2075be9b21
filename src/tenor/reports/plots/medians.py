"""One figure of every row of a result: the median as a dot, with a line from the smallest to the largest repeat."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from tenor.reports.drawing.plot import Plot, PlotData, finish
from tenor.reports.drawing.theme import FAINT, INK, SERIES, canvas
from tenor.reports.values import left_out, number, readable, tick

MOST_ROWS = 40

Rows = Sequence[Mapping[str, Any]]


def medians(rows: Rows, key: str, unit: str, reference: str = "", note: str = "") -> Plot | None:
    """Plot one figure of every row.

    Args:
        rows: The rows of a result.
        key: The figure.
        unit: What the figure counts in, for the axis and the title.
        reference: The name of a row through whose median a dashed line goes.
        note: What the reference is, for the legend.
    """
    found = [row for row in rows if number(row.get(key)) is not None]
    if not found:
        return None
    shown = found[:MOST_ROWS]
    names = [readable(str(row.get("name")))[:60] for row in shown]
    points = [_point(row, key) for row in shown]
    with canvas(11.2, 0.9 + 0.36 * len(shown)) as figure:
        axes = figure.subplots()
        for place, (low, middle, high) in enumerate(points):
            axes.plot([low, high], [place, place], color=SERIES[0], linewidth=2, solid_capstyle="round")
            axes.plot([middle], [place], marker="o", markersize=7, color=SERIES[0])
            text = f"{middle:,.0f}" if abs(middle) >= 1000 else f"{middle:.4g}"
            axes.annotate(text, (high, place), (8, 0), textcoords="offset points", va="center", color=INK)
        if reference in names:
            at = points[names.index(reference)][1]
            axes.axvline(at, color=FAINT, linestyle="--", linewidth=1.2, label=note or reference)
            figure.legend(*axes.get_legend_handles_labels(), fontsize=9, loc="outside upper right")
        axes.set(xlabel=unit, ylim=(len(shown) - 0.5, -0.5))
        if min(low for low, _, _ in points) < 0.6 * max(high for _, _, high in points):
            axes.set_xlim(min(0.0, *(low for low, _, _ in points)), None)
        axes.margins(x=0.08)
        axes.set_yticks(range(len(shown)), [tick(name, 36) for name in names])
        axes.grid(False, axis="y")
        words = ", ".join(f"{name} {middle:.4g}" for name, (_, middle, _) in zip(names, points, strict=True))
        words = f"Median and range of the repeats, in {unit}: {words}.{left_out(len(found), MOST_ROWS, 'rows')}"
        data = [[name, middle, low, high] for name, (low, middle, high) in zip(names, points, strict=True)]
        title = f"{unit[:1].upper()}{unit[1:]} by row"
        return finish(figure, title, words, PlotData(["name", unit, "min", "max"], data), wide=True)


def _point(row: Mapping[str, Any], key: str) -> tuple[float, float, float]:
    """Return the smallest repeat, the median and the largest repeat."""
    middle = number(row.get(key)) or 0.0
    spread = row.get("spread")
    own = spread.get(key) if isinstance(spread, dict) else None
    ends = [number(own.get(end)) if isinstance(own, dict) else None for end in ("min", "max")]
    low, high = (middle if end is None else end for end in ends)
    return min(low, middle), middle, max(high, middle)
