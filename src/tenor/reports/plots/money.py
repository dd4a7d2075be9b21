"""What accuracy and speed cost: accuracy against dollars, and dollars against time, with the Pareto front."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from tenor.bench.pareto import pareto_front
from tenor.reports.drawing.plot import Plot, PlotData, finish
from tenor.reports.drawing.theme import FAINT, INK, PAPER, SERIES, canvas, label_logarithms
from tenor.reports.values import left_out, number, readable, tick
from tenor.wording import seconds_text

MOST_POINTS = 60
FAR = 30.0  # between the smallest and the largest value of an axis, above which it is logarithmic
_ROOM = (0.18, 0.07)  # that a name needs, as shares of the width and the height

Rows = Sequence[Mapping[str, Any]]


@dataclass(frozen=True)
class Offer:
    """One run or plan: what it costs and what it gives, with the ends of the intervals where they are known."""

    name: str
    dollars: float
    value: float  # accuracy, or seconds
    low: float
    high: float
    is_extrapolated: bool = False


def accuracy_against_dollars(offers: Sequence[Offer]) -> Plot | None:
    """Plot accuracy against dollars; the line connects the offers that no other offer beats in both."""
    words = "accuracy"
    return _plot(offers, "Accuracy against dollars", words, pareto(offers, larger_is_better=True))


def dollars_against_time(rows: Rows) -> Plot | None:
    """Plot the time and the price of each plan, with the interval of the time and the Pareto front."""
    offers = [offer for row in rows if (offer := _plan(row, "seconds")) is not None]
    return _plot(offers, "Time against dollars", "seconds", pareto(offers, larger_is_better=False))


def planned_accuracy(rows: Rows) -> Plot | None:
    """Plot the expected accuracy of each plan against its price."""
    return accuracy_against_dollars([offer for row in rows if (offer := _plan(row, "accuracy")) is not None])


def pareto(offers: Sequence[Offer], *, larger_is_better: bool) -> list[Offer]:
    """Return the offers that no other offer beats, by rising price."""
    sign = -1.0 if larger_is_better else 1.0
    is_best = pareto_front([(offer.dollars, sign * offer.value) for offer in offers])
    return sorted((offer for offer, best in zip(offers, is_best, strict=True) if best), key=lambda o: o.dollars)


def _plan(row: Mapping[str, Any], key: str) -> Offer | None:
    dollars, value = number(row.get("dollars")), number(row.get(key))
    if dollars is None or value is None or dollars < 0 or value < 0:
        return None
    low, high = number(row.get(f"{key}_low")), number(row.get(f"{key}_high"))
    name = row.get("name") or f"{row.get('machine') or ''} ×{row.get('workers')}"
    is_extrapolated = row.get("extrapolated") is True
    return Offer(
        name=readable(str(name))[:60],
        dollars=dollars,
        value=value,
        low=value if low is None else min(low, value),
        high=value if high is None else max(high, value),
        is_extrapolated=is_extrapolated,
    )


def dollars(amount: float) -> str:
    """Return an amount to the cent, or smaller amounts with two digits."""
    return f"{amount:,.2f}" if amount >= 0.1 else f"{amount:.2g}"


def _words(axis: str, value: float) -> str:
    return seconds_text(value) if axis == "seconds" else f"{axis} {value:,.4g}"


def _apart(offers: Sequence[Offer]) -> list[Offer]:
    """Return the offers that have room for their names; the first offers come first."""
    spans = [max(values) - min(values) or 1.0 for values in zip(*((o.dollars, o.value) for o in offers), strict=True)]
    chosen: list[Offer] = []
    for offer in offers:
        gaps = [(abs(o.dollars - offer.dollars) / spans[0], abs(o.value - offer.value) / spans[1]) for o in chosen]
        if not any(across < _ROOM[0] and down < _ROOM[1] for across, down in gaps):
            chosen.append(offer)
    return chosen


def _use_logarithms(axes: Any, *ranges: Sequence[tuple[float, float]]) -> None:
    """Make an axis logarithmic if its values span more than a factor of FAR; `ranges` are those of x, then of y."""
    for name, ends in zip("xy", ranges, strict=True):
        low, high = min(low for low, _ in ends), max(high for _, high in ends)
        if low > 0 and high / low > FAR:
            axes.set(**{f"{name}scale": "log"})
            label_logarithms(getattr(axes, f"{name}axis"))


def _plot(offers: Sequence[Offer], title: str, axis: str, front: Sequence[Offer]) -> Plot | None:
    if not offers:
        return None
    shown = list(offers)[:MOST_POINTS]
    with canvas(11.2, 4.0) as figure:
        axes = figure.subplots()
        best = [offer for offer in front if offer in shown]
        axes.plot([o.dollars for o in best], [o.value for o in best], color=SERIES[0], linewidth=1.2, zorder=1)
        for offer in shown:
            colour = SERIES[0] if offer in best else FAINT
            fill = PAPER if offer.is_extrapolated else colour
            axes.plot([offer.dollars] * 2, [offer.low, offer.high], color=colour, linewidth=1.2, zorder=2)
            axes.plot([offer.dollars], [offer.value], marker="o", markersize=6, color=colour, markerfacecolor=fill)
        for offer in _apart([*best, *(offer for offer in shown if offer not in best)]):
            at, name = (offer.dollars, offer.value), tick(offer.name, 30)
            axes.annotate(name, at, (6, 3), textcoords="offset points", va="bottom", fontsize=9, color=INK)
        axes.set(xlabel="dollars", ylabel=axis)
        _use_logarithms(axes, [(o.dollars, o.dollars) for o in shown], [(o.low, o.high) for o in shown])
        axes.margins(x=0.1, y=0.12)
        names = ", ".join(f"{o.name} ({dollars(o.dollars)} dollars, {_words(axis, o.value)})" for o in best)
        words = f"Not beaten in both: {names}.{left_out(len(offers), MOST_POINTS, 'offers')}"
        if any(offer.is_extrapolated for offer in shown):
            words += " Hollow: extrapolated beyond what was measured."
        data = [[o.name, o.dollars, o.value, o.low, o.high, o in best, o.is_extrapolated] for o in shown]
        head = ["name", "dollars", axis, "low", "high", "Pareto front", "extrapolated"]
        return finish(figure, title, words, PlotData(head, data), wide=True)
