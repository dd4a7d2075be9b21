"""Reliability curves: how often predictions of a probability come true, with the expected calibration error."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from tenor.evaluation.calibration import NUM_BINS, ReliabilityBin, expected_calibration_error
from tenor.reports.drawing.plot import Plot, PlotData, finish
from tenor.reports.drawing.theme import FAINT, SERIES, canvas, series_style
from tenor.reports.plots.curves import MOST_RUNS
from tenor.reports.values import left_out, number, tick

MOST_BINS = 10 * NUM_BINS
_HEAD = ("run", "low", "high", "rows", "mean probability", "share that came true")


def reliability_curve(metrics: Mapping[str, Any], classes: Sequence[str], split: str) -> Plot | None:
    """Plot the share that came true by probability, and below it the number of rows of each bin."""
    bins = read_bins(metrics.get("reliability"))
    if not bins:
        return None
    with canvas(5.4, 4.0) as figure:
        above, below = figure.subplots(2, 1, sharex=True, height_ratios=(3, 1))
        _ideal(above)
        for one in bins:
            above.plot([one.probability] * 2, [one.probability, one.share], color=SERIES[1], linewidth=1.2)
        above.plot([b.probability for b in bins], [b.share for b in bins], marker="o", markersize=4, color=SERIES[0])
        above.set(ylabel="share that came true", ylim=(-0.03, 1.03), xlim=(-0.03, 1.03))
        centres = [(one.low + one.high) / 2 for one in bins]
        below.bar(centres, [one.rows for one in bins], [0.9 * (one.high - one.low) for one in bins], color=SERIES[0])
        below.set(xlabel=_axis(classes), ylabel="rows")
        below.grid(False, axis="x")
        title = f"Calibration on the {split} split"
        return finish(figure, title, _words(bins), _data({"": bins}))


def reliability_curves(every: Mapping[str, Mapping[str, Any]], classes: Sequence[str], split: str) -> Plot | None:
    """Plot the curves of several runs, given as the metrics of each run by name."""
    found = {name: read_bins(metrics.get("reliability")) for name, metrics in every.items()}
    known = {name: bins for name, bins in found.items() if bins}
    if len(known) < 2:
        return None
    shown = dict(list(known.items())[:MOST_RUNS])
    with canvas(11.2, 4.2) as figure:
        axes = figure.subplots()
        _ideal(axes)
        for place, (name, bins) in enumerate(shown.items()):
            label = f"{tick(name, 40)}: {expected_calibration_error(bins):.3f}"
            x, y = [one.probability for one in bins], [one.share for one in bins]
            axes.plot(x, y, marker="o", markersize=4, label=label, **series_style(place))
        axes.set(ylabel="share that came true", xlabel=_axis(classes), ylim=(-0.03, 1.03), xlim=(-0.03, 1.03))
        figure.legend(fontsize=9, loc="outside right upper", title="expected calibration error")
        errors = ", ".join(f"{name} {expected_calibration_error(bins):.3f}" for name, bins in shown.items())
        words = f"Expected calibration error: {errors}. Smaller is better.{left_out(len(known), MOST_RUNS, 'runs')}"
        return finish(figure, f"Calibration on the {split} split", words, _data(shown), wide=True)


def read_bins(value: Any) -> list[ReliabilityBin]:
    """Return the bins of an untrusted file; empty unless all of them make sense."""
    bins = []
    for one in value if isinstance(value, list) and len(value) <= MOST_BINS else []:
        values = {name: number(one.get(name)) if isinstance(one, dict) else None for name in _FIELDS}
        rows = values.pop("rows")
        shares = [share for share in values.values() if share is not None and 0 <= share <= 1]
        if rows is None or rows < 1 or len(shares) != len(values):
            return []
        low, high, probability, share = shares
        bins.append(ReliabilityBin(low, high, int(rows), probability, share))
    return bins


_FIELDS = ("low", "high", "rows", "probability", "share")


def _ideal(axes: Any) -> None:
    axes.plot([0, 1], [0, 1], color=FAINT, linestyle="--", linewidth=1.2)


def _axis(classes: Sequence[str]) -> str:
    return f"predicted probability of {tick(classes[1])}" if len(classes) == 2 else "probability of the predicted class"


def _words(bins: list[ReliabilityBin]) -> str:
    worst = max(bins, key=lambda one: one.rows * abs(one.probability - one.share))
    return (
        f"Expected calibration error {expected_calibration_error(bins):.3f}: the mean distance from the dashed line, "
        f"weighted by rows. The largest part of it: of {worst.rows:,} rows with a mean probability of "
        f"{worst.probability:.2f}, {worst.share:.2f} came true."
    )


def _data(every: Mapping[str, list[ReliabilityBin]]) -> PlotData:
    rows = [[run, b.low, b.high, b.rows, b.probability, b.share] for run, bins in every.items() for b in bins]
    return PlotData(_HEAD, rows)
