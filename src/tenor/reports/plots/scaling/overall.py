"""Throughput, speed-up and efficiency by the number of workers, with the ideal line and the spread of the repeats.

The speed-up is taken from the result, which compares runs of one turn. If the result has none, it is the rate divided
by the median rate with the fewest workers of the same line. Efficiency is the speed-up divided by the ratio of the
workers. For weak scaling, where the work grows with the workers, the rates grow in the same ideal way, so one
definition serves both. Points with more workers than cores are hollow, apart from the line, and have no speed-up:
they do not show how a program scales.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from tenor.reports.drawing.plot import Plot, PlotData, finish
from tenor.reports.drawing.theme import FAINT, PAPER, canvas, series_style
from tenor.reports.values import counted, left_out, number, readable, tick

MOST_COUNTS = 32  # numbers of workers in a line
MOST_LINES = 9
RATES = {
    "samples_per_s": "samples/s",
    "reviews_per_s": "reviews/s",
    "rows_per_s": "rows/s",
    "mb_per_s": "MB/s",
    "words_per_s": "words/s",
    "tokens_per_s": "tokens/s",
}

Rows = Sequence[Mapping[str, Any]]


@dataclass(frozen=True)
class ScalingPoint:
    """The rate of one number of workers: the median of the repeats, the smallest and the largest."""

    workers: float
    rate: float
    low: float
    high: float
    gain: tuple[float, float, float] | None = None  # the speed-up and its ends, if the result has them
    shares_cores: bool = False  # whether there are more workers than cores

    def speed_up(self, base: ScalingPoint) -> tuple[float, float, float]:
        """The speed-up over another number of workers, and its smallest and largest repeat."""
        return self.gain or (self.rate / base.rate, self.low / base.rate, self.high / base.rate)


def scaling(rows: Rows, cores: float | None = None) -> list[Plot]:
    """Return one plot for each unit of rate that the rows have.

    Args:
        rows: Rows with `workers`, a rate such as `samples_per_s`, and, if there were repeats, a `spread`.
        cores: The cores of the machine, for rows that do not say themselves whether they share cores.
    """
    units = {name: unit for name, unit in RATES.items() if name != "tokens_per_s"} if _has_rate(rows) else RATES
    found = (_plot(scaling_lines(rows, name, cores), unit, cores) for name, unit in units.items())
    return [plot for plot in found if plot is not None]


def scaling_lines(rows: Rows, rate: str, cores: float | None = None) -> dict[str, list[ScalingPoint]]:
    """Return the points of each line by rising workers. Rows with equal words, such as the strategy, form a line."""
    lines: dict[str, dict[float, ScalingPoint]] = {}
    for row in rows:
        workers, value = number(row.get("workers")), number(row.get(rate))
        if workers is None or value is None or workers <= 0 or value <= 0:
            continue
        gain = number(row.get("speed_up"))
        ups = (gain, *_ends(row, "speed_up", gain)) if gain is not None and gain > 0 else None
        is_crowded = row.get("shares_cores") is True or (cores is not None and workers > cores)
        point = ScalingPoint(workers, value, *_ends(row, rate, value), ups, is_crowded)
        lines.setdefault(line_name(row), {})[workers] = point
    return {name: sorted(points.values(), key=lambda p: p.workers) for name, points in lines.items()}


def _ends(row: Mapping[str, Any], name: str, value: float) -> tuple[float, float]:
    """The smallest and the largest repeat of a figure."""
    spread = row.get("spread")
    own = spread.get(name) if isinstance(spread, dict) else None
    low, high = (number(own.get(end)) if isinstance(own, dict) else None for end in ("min", "max"))
    return (value if low is None else min(low, value)), max(high or value, value)


def line_name(row: Mapping[str, Any]) -> str:
    """Return the words that describe a row, such as its strategy, without its own name."""
    words = [value for key, value in row.items() if isinstance(value, str) and key not in ("name", "command")]
    return readable(" ".join(words))[:60]


def _has_rate(rows: Rows) -> bool:
    return any(name in row for row in rows for name in RATES if name != "tokens_per_s")


def _plot(lines: Mapping[str, list[ScalingPoint]], unit: str, cores: float | None) -> Plot | None:
    if not lines:
        return None
    longest = max(map(len, lines.values()))
    note = left_out(len(lines), MOST_LINES, "lines") + left_out(longest, MOST_COUNTS, "numbers of workers")
    shown = {name: points[:MOST_COUNTS] for name, points in list(lines.items())[:MOST_LINES]}
    counts = sorted({point.workers for points in shown.values() for point in points})
    with canvas(11.2, 3.5) as figure:
        rates, speed_ups, efficiencies = every = figure.subplots(1, 3)
        for place, (name, points) in enumerate(shown.items()):
            style = {**series_style(place), "label": tick(name, 40) or "measured"}
            _draw(every, points, style)
        own = [point.workers for points in shown.values() for point in _apart(points)]
        if own:
            speed_ups.plot([min(own), max(own)], [1.0, max(own) / min(own)], **_IDEAL, label="ideal")
        efficiencies.axhline(1.0, **_IDEAL)
        for axes, title in zip(every, (f"Rate ({unit})", "Speed-up", "Efficiency"), strict=True):
            axes.set(title=title, xlabel="workers", ylim=(0, 1.03 * axes.get_ylim()[1]))
            if len(counts) <= 8:
                axes.set_xticks(counts, [f"{count:g}" for count in counts])
            room = 0.05 * (counts[-1] - counts[0]) or 0.5
            axes.set_xlim(counts[0] - room, counts[-1] + room)
        rates.yaxis.set_major_formatter("{x:,.10g}")
        handles: dict[str, Any] = {}  # each label once
        for axes in (rates, speed_ups):
            for handle, label in zip(*axes.get_legend_handles_labels(), strict=True):
                handles.setdefault(label, handle)
        columns = min(5, len(handles))
        figure.legend([*handles.values()], [*handles], fontsize=9, loc="outside lower center", ncols=columns)
        words = " ".join(_words(name, points, unit) for name, points in shown.items())
        words += _crowded_words(shown, cores) + note
        title = f"Throughput, speed-up and efficiency by workers ({unit})"
        return finish(figure, title, words, _data(shown, unit), wide=True)


_IDEAL: dict[str, Any] = {"color": FAINT, "linestyle": "--", "linewidth": 1.2}
CROWDED = "more workers than cores"


def _apart(points: Sequence[ScalingPoint]) -> list[ScalingPoint]:
    """The points that show scaling, without those whose workers share cores."""
    return [point for point in points if not point.shares_cores]


def _draw(every: Sequence[Any], points: Sequence[ScalingPoint], style: dict[str, Any]) -> None:
    """Draw the points that show scaling as lines, and the others as hollow marks beside the line of rates."""
    rates, speed_ups, efficiencies = every
    own = _apart(points)
    if own:
        base = own[0]
        ideal = [(p.workers, p.workers / base.workers) for p in own]
        rates.plot(*zip(*((w, base.rate * r) for w, r in ideal), strict=True), **_IDEAL)
        ups = [(p.workers, *p.speed_up(base)) for p in own]
        _bars(rates, [(p.workers, p.rate, p.low, p.high) for p in own], marker="o", **style)
        _bars(speed_ups, ups, marker="o", **style)
        shares = [(w, *(end / r for end in ends)) for (w, *ends), (_, r) in zip(ups, ideal, strict=True)]
        _bars(efficiencies, shares, marker="o", **style)
    if crowded := [(p.workers, p.rate, p.low, p.high) for p in points if p.shares_cores]:
        hollow = {**style, "linestyle": "none", "markerfacecolor": PAPER, "label": CROWDED}
        _bars(rates, crowded, marker="o", **hollow)


def _bars(axes: Any, points: Sequence[tuple[float, ...]], **style: Any) -> None:
    """Draw (workers, median, smallest, largest) with a bar from the smallest to the largest repeat."""
    x, y = [point[0] for point in points], [point[1] for point in points]
    bars = [[point[1] - point[2] for point in points], [point[3] - point[1] for point in points]]
    axes.errorbar(x, y, yerr=bars, capsize=3, elinewidth=1.2, markersize=5, **style)


def _words(name: str, points: Sequence[ScalingPoint], unit: str) -> str:
    parts: list[str] = []
    base = next(iter(_apart(points)), None)
    for point in points:
        many = counted(point.workers, "worker") if not parts else f"{point.workers:g}"
        words = f"{point.rate:,.0f} {unit if not parts else ''}".strip() + f" with {many}"
        if base is not None and point is not base and not point.shares_cores:
            up = point.speed_up(base)[0]
            words += f" ({up:.2f}× the first, {up * base.workers / point.workers:.0%} of ideal)"
        parts.append(words)
    return f"{name}: {'; '.join(parts)}." if name else f"{'; '.join(parts)}."


def _crowded_words(lines: Mapping[str, list[ScalingPoint]], cores: float | None) -> str:
    counts = sorted({point.workers for points in lines.values() for point in points if point.shares_cores})
    if not counts:
        return ""
    on = f" on {cores:g} cores" if cores else ""
    which = ", ".join(f"{count:g}" for count in counts)
    return f" Hollow: with {which} workers{on}, workers share cores, so this is not scaling."


def _data(lines: Mapping[str, list[ScalingPoint]], unit: str) -> PlotData:
    head = ["line", "workers", unit, "min", "max", "speed-up", "efficiency", CROWDED]
    rows = []
    for name, points in lines.items():
        base = next(iter(_apart(points)), None)
        for p in points:
            figures: list[Any] = ["", ""]
            if base is not None and not p.shares_cores:
                speed_up = p.speed_up(base)[0]
                figures = [speed_up, speed_up * base.workers / p.workers]
            rows.append([name, p.workers, p.rate, p.low, p.high, *figures, p.shares_cores])
    return PlotData(head, rows)
