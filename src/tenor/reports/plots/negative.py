"""Shares of negative reviews over time and by group, with their intervals, and the phrases that drive a side."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from tenor.reports.drawing.plot import Plot, PlotData, finish
from tenor.reports.drawing.theme import INK, SERIES, canvas
from tenor.reports.values import left_out, readable, tick

MOST_GROUPS = 20
MOST_PHRASES = 20
MOST_TICKS = 10

Rows = Sequence[Mapping[str, Any]]


def share_over_time(periods: Rows) -> Plot | None:
    """Plot the share of negative reviews in each period, with its interval as a band and the rows as bars below."""
    shown = [row for row in periods if row["rows"]]
    if len(shown) < 2:
        return None
    places = [place for place, row in enumerate(periods) if row["rows"]]
    with canvas(11.2, 4.2) as figure:
        upper, lower = figure.subplots(2, 1, sharex=True, height_ratios=(3, 1))
        upper.fill_between(
            places,
            [row["low"] for row in shown],
            [row["high"] for row in shown],
            color=SERIES[1],
            alpha=0.2,
            linewidth=0,
        )
        upper.plot(places, [row["negative_share"] for row in shown], color=SERIES[1], marker="o", markersize=3.5)
        upper.set(ylabel="share negative", ylim=(0, None))
        lower.bar(places, [row["rows"] for row in shown], color=SERIES[0])
        lower.set(ylabel="reviews")
        step = -(-len(periods) // MOST_TICKS)
        lower.set_xticks(range(0, len(periods), step), [tick(str(row["period"])) for row in periods[::step]])
        first, last = shown[0], shown[-1]
        words = (
            f"From {first['negative_share']:.1%} in {first['period']} to {last['negative_share']:.1%} in "
            f"{last['period']}. The band is the 95 % interval."
        )
        rows = [[row["period"], row["rows"], row["negative_share"], row["low"], row["high"]] for row in periods]
        data = PlotData(["period", "rows", "negative_share", "low", "high"], rows)
        return finish(figure, "Share of negative reviews over time", words, data, wide=True)


def worst_groups(groups: Rows, by: str, overall: float) -> Plot | None:
    """Plot the share of the worst groups as dots with intervals, and the share of all reviews as a dashed line."""
    if not groups:
        return None
    shown = groups[:MOST_GROUPS]
    with canvas(11.2, 0.9 + 0.3 * len(shown)) as figure:
        axes = figure.subplots()
        for place, row in enumerate(shown):
            axes.plot([row["low"], row["high"]], [place, place], color=SERIES[1], linewidth=2, solid_capstyle="round")
            axes.plot([row["negative_share"]], [place], marker="o", markersize=6, color=SERIES[1])
        axes.axvline(overall, color=INK, linestyle="--", linewidth=1, label=f"all reviews, {overall:.1%}")
        figure.legend(*axes.get_legend_handles_labels(), fontsize=9, loc="outside upper right")
        axes.set(xlabel="share negative", ylim=(len(shown) - 0.5, -0.5), xlim=(0, 1))
        axes.set_yticks(range(len(shown)), [tick(str(row["group"]), 36) for row in shown])
        axes.grid(False, axis="y")
        listed = ", ".join(f"{readable(str(row['group']))[:60]} {row['negative_share']:.0%}" for row in shown[:5])
        words = (
            f"The worst, by the lower end of the 95 % interval: {listed}.{left_out(len(groups), MOST_GROUPS, 'groups')}"
        )
        rows = [[row["group"], row["rows"], row["negative_share"], row["low"], row["high"]] for row in groups]
        data = PlotData([by, "rows", "negative_share", "low", "high"], rows)
        return finish(figure, f"Worst groups by {readable(by)[:60]}", words, data, wide=True)


def driving_phrases(phrases: Rows, side: str) -> Plot | None:
    """Plot contribution × volume of the phrases that drive one side."""
    if not phrases:
        return None
    shown = phrases[:MOST_PHRASES]
    with canvas(5.4, 0.8 + 0.27 * len(shown)) as figure:
        axes = figure.subplots()
        colour = SERIES[1] if side == "negative" else SERIES[2]
        axes.barh(range(len(shown)), [row["score"] for row in shown], color=colour)
        axes.set(ylim=(len(shown) - 0.5, -0.5), xlabel="contribution × reviews")
        axes.set_yticks(range(len(shown)), [tick(str(row["phrase"]), 26) for row in shown])
        axes.locator_params(axis="x", nbins=4)
        axes.grid(False, axis="y")
        listed = ", ".join(f"{row['phrase']} ({row['rows']:,} reviews)" for row in shown[:5])
        words = f"The strongest: {listed}."
        rows = [[row["phrase"], row["rows"], row["negative_share"], row["score"]] for row in phrases]
        data = PlotData(["phrase", "rows", "negative_share", "score"], rows)
        return finish(figure, f"What drives {side} reviews", words, data)
