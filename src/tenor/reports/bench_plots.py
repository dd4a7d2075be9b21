"""Plots of benchmark results: pure functions from rows to inline SVG, each with a description in words."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from tenor.reports.plots import Plot
from tenor.reports.svg import FAINT, INK, SERIES, canvas, inline
from tenor.reports.values import number

_DASHES = ("-", "--", ":")
_AXES = {"epochs": "epoch", "seconds": "seconds since training began", "bytes": "megabytes sent by the first worker"}

Rows = Sequence[dict[str, Any]]
Points = list[tuple[float, float]]


def accuracy_curves(rows: Rows, workers: int) -> Plot | None:
    """Plot validation accuracy against epochs, seconds and bytes: one line per strategy and one for a single worker."""
    named = {
        str(row.get("strategy")): row for row in rows if row.get("workers") == workers or row["name"] == "single-1"
    }
    lines = {name: curves for name, row in named.items() if (curves := _curves(row))}
    if not lines:
        return None
    title = f"Validation accuracy with {workers} worker{'s' if workers > 1 else ''}"
    with canvas(11.2, 3.4) as figure:
        for axes, (over, label) in zip(figure.subplots(1, 3, sharey=True), _AXES.items(), strict=True):
            for place, curves in enumerate(lines.values()):
                if curves[over]:
                    axes.plot(*zip(*curves[over], strict=True), **_style(place))
            axes.set(xlabel=label, title=f"Against {over}")
            if over == "bytes" and any(curves[over] for curves in lines.values()):
                axes.set_xscale("log")
        handles = [_key(place) for place in range(len(lines))]
        figure.legend(handles, list(lines), fontsize=9, loc="outside lower center", ncols=len(lines))
        last = ", ".join(f"{name} {curves['epochs'][-1][1]:.3f}" for name, curves in lines.items())
        words = f"After the last epoch: {last}. A strategy that sends nothing has no line against bytes."
        return Plot(title, inline(figure, f"curves-{workers}", title, words), words, wide=True)


def by_workers(rows: Rows) -> Plot | None:
    """Plot speed-up and final test accuracy by the number of workers, one line per strategy."""
    names = dict.fromkeys(str(row.get("strategy")) for row in rows if row.get("strategy"))
    found = {name: _by_workers([row for row in rows if row.get("strategy") == name]) for name in names}
    lines = {name: points for name, points in found.items() if points["test_accuracy"]}
    if not lines:
        return None
    titles = {"speed_up": "Speed-up", "test_accuracy": "Test accuracy"}
    with canvas(11.2, 3.4) as figure:
        for axes, (key, title) in zip(figure.subplots(1, 2), titles.items(), strict=True):
            for place, (name, points) in enumerate(lines.items()):
                style = {"color": FAINT, "linewidth": 1.2} if name == "original" else _style(place)
                if points[key]:
                    axes.plot(*zip(*points[key], strict=True), marker="o", markersize=4, label=name, **style)
            axes.set(title=title, xlabel="workers")
            axes.set_xscale("log", base=2)
            axes.xaxis.set_major_formatter("{x:g}")
        figure.legend(*axes.get_legend_handles_labels(), fontsize=9, loc="outside lower center", ncols=len(lines))
        parts = [
            f"{name} from {p['test_accuracy'][0][1]:.3f} to {p['test_accuracy'][-1][1]:.3f}"
            for name, p in lines.items()
        ]
        words = f"Test accuracy with the fewest and the most workers measured: {', '.join(parts)}."
        title = "Speed-up and accuracy by workers"
        return Plot(title, inline(figure, "by-workers", title, words), words, wide=True)


def rates(rows: Rows) -> Plot | None:
    """Plot megabytes per second by contender; the dashed line is the rate of `wc -w`, which only counts words."""
    found = [(str(row["name"]), value) for row in rows if (value := number(row.get("mb_per_s"))) is not None]
    if not found:
        return None
    names, values = zip(*found, strict=True)
    with canvas(11.2, 0.9 + 0.4 * len(names)) as figure:
        axes = figure.subplots()
        axes.barh(range(len(names)), values, color=SERIES[0], height=0.6)
        for place, value in enumerate(values):
            axes.annotate(f"{value:,.0f}", (value, place), (4, 0), textcoords="offset points", va="center", color=INK)
        if (rate_of_wc := dict(found).get("wc")) is not None:
            axes.axvline(rate_of_wc, color=FAINT, linestyle="--", linewidth=1.2, label="wc -w")
            figure.legend(*axes.get_legend_handles_labels(), fontsize=9, loc="outside upper right")
        axes.set(xlabel="megabytes per second", ylim=(len(names) - 0.5, -0.5))
        axes.set_yticks(range(len(names)), [name.replace("$", r"\$") for name in names])
        axes.grid(False, axis="y")
        words = ", ".join(f"{name} {value:,.0f} MB/s" for name, value in found) + "."
        title = "Megabytes per second"
        return Plot(title, inline(figure, "rates", title, words), words, wide=True)


def _curves(row: dict[str, Any]) -> dict[str, Points]:
    """Return the points (x, accuracy) for each x axis; points with 0 megabytes do not fit a logarithmic axis."""
    if "curve" not in row:
        return {}
    curve, accuracy = row["curve"], row["curve"]["accuracy"]
    megabytes = [count / 1e6 for count in curve["bytes"]]
    return {
        "epochs": list(enumerate(accuracy, start=1)),
        "seconds": list(zip(curve["seconds"], accuracy, strict=True)),
        "bytes": [pair for pair in zip(megabytes, accuracy, strict=True) if pair[0] > 0],
    }


def _by_workers(rows: Rows) -> dict[str, Points]:
    return {
        key: sorted((float(row["workers"]), value) for row in rows if (value := number(row.get(key))) is not None)
        for key in ("speed_up", "test_accuracy")
    }


def _style(place: int) -> dict[str, Any]:
    return {"color": SERIES[place % len(SERIES)], "linestyle": _DASHES[place // len(SERIES) % len(_DASHES)]}


def _key(place: int) -> Any:
    from matplotlib.lines import Line2D

    return Line2D([], [], **_style(place))
