"""Throughput, speed-up and efficiency by the number of workers, with the ideal line and the spread of the repeats.

Speed-up is that of the result, which compares runs of one turn; without it, the rate divided by the median rate with
the fewest workers of the same line. Efficiency is the speed-up divided by the ratio of the workers. For weak scaling,
where the work grows with the workers, the rates grow in the same ideal way, so one definition serves both. Points with
more workers than cores are drawn hollow: they do not show how a program scales.
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

    def speed_up(self, base: ScalingPoint) -> tuple[float, float, float]:
        """The speed-up over another number of workers, and its smallest and largest repeat."""
        return self.gain or (self.rate / base.rate, self.low / base.rate, self.high / base.rate)


def scaling(rows: Rows, cores: float | None = None) -> list[Plot]:
    """Return one plot for each unit of rate that the rows have.

    Args:
        rows: Rows with `workers`, a rate such as `samples_per_s`, and, if there were repeats, a `spread`.
        cores: The cores of the machine; rows with more workers are drawn hollow.
    """
    units = {name: unit for name, unit in RATES.items() if name != "tokens_per_s"} if _has_rate(rows) else RATES
    found = (_plot(scaling_lines(rows, name), unit, cores) for name, unit in units.items())
    return [plot for plot in found if plot is not None]


def scaling_lines(rows: Rows, rate: str) -> dict[str, list[ScalingPoint]]:
    """Return the points of each line by rising workers. Rows with equal words, such as the strategy, form a line."""
    lines: dict[str, dict[float, ScalingPoint]] = {}
    for row in rows:
        workers, value = number(row.get("workers")), number(row.get(rate))
        if workers is None or value is None or workers <= 0 or value <= 0:
            continue
        gain = number(row.get("speed_up"))
        ups = (gain, *_ends(row, "speed_up", gain)) if gain is not None and gain > 0 else None
        point = ScalingPoint(workers, value, *_ends(row, rate, value), ups)
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
            base = points[0]
            style = {**series_style(place), "label": tick(name, 40) or "measured"}
            ideal = [(p.workers, p.workers / base.workers) for p in points]
            rates.plot(*zip(*((w, base.rate * r) for w, r in ideal), strict=True), **_IDEAL)
            ups = [(p.workers, *p.speed_up(base)) for p in points]
            _line(rates, [(p.workers, p.rate, p.low, p.high) for p in points], cores, style)
            _line(speed_ups, ups, cores, style)
            shares = [(w, *(end / r for end in ends)) for (w, *ends), (_, r) in zip(ups, ideal, strict=True)]
            _line(efficiencies, shares, cores, style)
        ends = (counts[0], counts[-1])
        speed_ups.plot(ends, [1.0, ends[1] / ends[0]], **_IDEAL, label="ideal")
        efficiencies.axhline(1.0, **_IDEAL)
        for axes, title in zip(every, (f"Rate ({unit})", "Speed-up", "Efficiency"), strict=True):
            axes.set(title=title, xlabel="workers", ylim=(0, None))
            if len(counts) <= 8:
                axes.set_xticks(counts, [f"{count:g}" for count in counts])
        handles = speed_ups.get_legend_handles_labels()
        figure.legend(*handles, fontsize=9, loc="outside lower center", ncols=min(5, len(handles[0])))
        words = " ".join(_words(name, points, unit) for name, points in shown.items())
        words += _crowded_words(counts, cores) + note
        title = f"Throughput, speed-up and efficiency by workers ({unit})"
        return finish(figure, title, words, _data(shown, unit, cores), wide=True)


_IDEAL: dict[str, Any] = {"color": FAINT, "linestyle": "--", "linewidth": 1.2}


def _line(axes: Any, points: Sequence[tuple[float, ...]], cores: float | None, style: Any) -> None:
    """Draw (workers, median, smallest, largest) as a line with a bar from the smallest to the largest repeat."""
    x, y = [point[0] for point in points], [point[1] for point in points]
    bars = [[point[1] - point[2] for point in points], [point[3] - point[1] for point in points]]
    axes.errorbar(x, y, yerr=bars, capsize=3, elinewidth=1.2, **style)
    for a, b in zip(x, y, strict=True):
        fill = PAPER if cores and a > cores else style["color"]
        axes.plot([a], [b], marker="o", markersize=5, color=style["color"], markerfacecolor=fill)


def _words(name: str, points: Sequence[ScalingPoint], unit: str) -> str:
    base = points[0]
    words = f"{base.rate:,.0f} {unit} with {counted(base.workers, 'worker')}" + "".join(
        f"; {p.rate:,.0f} with {p.workers:g} ({p.speed_up(base)[0]:.2f}× the first, "
        f"{p.speed_up(base)[0] * base.workers / p.workers:.0%} of ideal)"
        for p in points[1:]
    )
    return f"{name}: {words}." if name else f"{words}."


def _crowded_words(counts: Sequence[float], cores: float | None) -> str:
    crowded = [f"{count:g}" for count in counts if cores and count > cores]
    if not crowded:
        return ""
    return (
        f" Hollow: with {', '.join(crowded)} workers on {cores:g} cores, workers share cores, so this is not scaling."
    )


def _data(lines: Mapping[str, list[ScalingPoint]], unit: str, cores: float | None) -> PlotData:
    head = ["line", "workers", unit, "min", "max", "speed-up", "efficiency", "more workers than cores"]
    rows = []
    for name, points in lines.items():
        for p in points:
            speed_up = p.speed_up(points[0])[0]
            efficiency = speed_up * points[0].workers / p.workers
            is_crowded = bool(cores and p.workers > cores)
            rows.append([name, p.workers, p.rate, p.low, p.high, speed_up, efficiency, is_crowded])
    return PlotData(head, rows)
