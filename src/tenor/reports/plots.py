"""Plots of a run: pure functions from numbers to inline SVG, each with a description in words."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from typing import Any

import numpy as np

from tenor.reports.run_data import RunData
from tenor.reports.svg import FAINT, INK, PAPER, SERIES, canvas, inline
from tenor.reports.values import LARGEST, number, readable

MOST_CLASSES = 20  # in a plot; with more, the cells are too small to read
MOST_WORKERS = 32  # in a plot
_MOST_POINTS = 1000  # about the width of a plot in pixels; more points only make the file larger


@dataclasses.dataclass(frozen=True)
class Plot:
    """A drawing with its title and caption."""

    title: str
    svg: str
    caption: str
    wide: bool = False


def learning_curve(run: RunData, over: str) -> Plot | None:
    """Plot training loss, validation accuracy and AUC, and the majority baseline over "epoch" or "seconds"."""
    losses = _thin(_points(run.epochs, over, "train_loss"))
    quality = {name: _thin(_points(run.epochs, over, "valid", key)) for name, key in _QUALITY.items()}
    if not losses and not any(quality.values()):
        return None
    with canvas(11.2, 3.1) as figure:
        left, right = figure.subplots(1, 2)
        if over == "seconds" and (steps := _thin(_points(run.steps, over, "loss"))):
            left.plot(*zip(*steps, strict=True), color=SERIES[0], alpha=0.3, linewidth=0.9, label="each step")
        _line(left, losses, SERIES[0], "mean of the epoch")
        for colour, (name, points) in zip(SERIES[1:], quality.items(), strict=True):
            _line(right, points, colour, name)
        if (base := _baseline(run)) is not None:
            right.axhline(base, color=FAINT, linestyle="--", linewidth=1.2, label="majority baseline (accuracy)")
        left.set_title("Training loss")
        right.set_title("On the validation split")
        for axes in (left, right):
            axes.set_xlabel("epoch" if over == "epoch" else "seconds since training began")
            axes.legend(fontsize=9)
            if over == "epoch":
                axes.xaxis.get_major_locator().set_params(integer=True)
        words = _curve_words(losses, quality)
        return Plot(_TITLES[over], inline(figure, f"curve-{over}", _TITLES[over], words), words, wide=True)


_QUALITY = {"accuracy": "accuracy", "AUC": "auc"}
_TITLES = {"epoch": "Learning curve over epochs", "seconds": "Learning curve over seconds"}


def confusion(metrics: dict[str, Any], classes: Sequence[str], split: str, things: str = "reviews") -> Plot | None:
    """Plot the counts of true classes (rows) and predicted classes (columns), shaded by the share of the true class."""
    counts = _matrix(metrics.get("confusion"), len(classes))
    if counts is None:
        return None
    totals = counts.sum(axis=1)
    note = left_out(len(classes), MOST_CLASSES, "classes")
    classes = [readable(name) for name in classes[:MOST_CLASSES]]
    counts = counts[:MOST_CLASSES, :MOST_CLASSES]
    shares = counts / np.maximum(totals[:MOST_CLASSES, None], 1)
    with canvas(5.4, 4.0) as figure:
        axes = figure.subplots()
        for (row, column), share in np.ndenumerate(shares):
            axes.add_patch(_cell(column, row, share))
            ink = PAPER if share > 0.55 else INK
            axes.text(column, row, f"{int(counts[row, column]):,}\n{share:.1%}", color=ink, ha="center", va="center")
        axes.set(xlim=(-0.5, len(classes) - 0.5), ylim=(len(classes) - 0.5, -0.5), xlabel="predicted", ylabel="true")
        axes.set_xticks(range(len(classes)), [_tick(name) for name in classes])
        axes.set_yticks(range(len(classes)), [_tick(name) for name in classes])
        axes.grid(False)
        axes.tick_params(length=0)
        axes.spines[:].set_visible(False)
        title = f"Confusion matrix on the {split} split"
        words = " ".join(
            f"Of {int(totals[i]):,} {name} {things}, {int(counts[i, i]):,} ({shares[i, i]:.1%}) were "
            "classified correctly."
            for i, name in enumerate(classes)
        )
        return Plot(title, inline(figure, "confusion", title, words + note), words + note)


def scaling(rows: Sequence[dict[str, Any]]) -> Plot | None:
    """Plot samples per second and speed-up by the number of workers, with the ideal line."""
    found = {number(row.get("workers")): number(row.get("samples_per_s")) for row in rows}
    points = sorted((workers, rate) for workers, rate in found.items() if workers and rate and min(workers, rate) > 0)
    if not points:
        return None
    note = left_out(len(points), MOST_WORKERS, "numbers of workers")
    points = points[:MOST_WORKERS]
    workers, rates = (np.array(values) for values in zip(*points, strict=True))
    ideal = rates[0] * workers / workers[0]
    with canvas(5.4, 4.0) as figure:
        left, right = figure.subplots(1, 2)
        for axes, base, title in ((left, 1.0, "Samples per second"), (right, rates[0], "Speed-up")):
            axes.plot(workers, ideal / base, color=FAINT, linestyle="--", linewidth=1.2, label="ideal")
            axes.plot(workers, rates / base, color=SERIES[0], marker="o", label="measured")
            axes.set(title=title, xlabel="workers", ylim=(0, None), xlim=(0, workers[-1] + 0.5))
            axes.set_xticks(workers, [f"{count:g}" for count in workers])
            axes.legend(fontsize=9, loc="upper left")
        first = f"{workers[0]:g} worker{'s' if workers[0] > 1 else ''}"
        words = f"{rates[0]:,.0f} samples/s with {first}" + "".join(
            f"; {rate:,.0f} with {count:g} ({rate / rates[0]:.2f}× the first, {rate / best:.0%} of ideal)"
            for count, rate, best in zip(workers[1:], rates[1:], ideal[1:], strict=True)
        )
        title, words = "Throughput and speed-up by workers", f"{words}.{note}"
        return Plot(title, inline(figure, "scaling", title, words), words)


def waiting(run: RunData, wide: bool = False) -> Plot | None:
    """Plot how many seconds each worker computed, and waited for the others, over all steps."""
    compute, wait = _per_worker(run.steps, "compute_seconds"), _per_worker(run.steps, "wait_seconds")
    if not len(compute) or len(compute) != len(wait):
        return None
    note = left_out(len(compute), MOST_WORKERS, "workers")
    compute, wait = compute[:MOST_WORKERS], wait[:MOST_WORKERS]
    with canvas(11.2 if wide else 5.4, max(1.6, 0.9 + 0.4 * len(compute))) as figure:
        axes = figure.subplots()
        places = np.arange(len(compute))
        axes.barh(places, compute, color=SERIES[0], height=0.6, label="computing")
        axes.barh(places, wait, left=compute, color=SERIES[1], height=0.6, label="waiting")
        axes.set(xlabel="seconds over all steps", ylim=(len(compute) - 0.5, -0.5))
        axes.set_yticks(places, [f"worker {rank}" for rank in places])
        axes.grid(False, axis="y")
        figure.legend(*axes.get_legend_handles_labels(), fontsize=9, loc="outside upper right", ncols=2)
        shares = wait / np.maximum(compute + wait, 1e-12)
        words = ", ".join(f"worker {rank} waited {share:.1%} of its time" for rank, share in enumerate(shares))
        title = "Computing and waiting by worker"
        words = words[:1].upper() + words[1:] + "." + note
        return Plot(title, inline(figure, "waiting", title, words), words, wide)


def left_out(count: int, most: int, things: str) -> str:
    """Return a sentence, after a space, about what the plot leaves out; empty if it shows everything."""
    return f" Only the first {most} of {count:,} {things} are shown." if count > most else ""


def _points(events: Sequence[dict[str, Any]], over: str, *path: str) -> list[tuple[float, float]]:
    """Return (x, y) for every event in which both are numbers that can be drawn."""
    points = []
    for event in events:
        value: Any = event
        for name in path:
            value = value.get(name) if isinstance(value, dict) else None
        x, y = number(event.get(over)), number(value)
        if x is not None and y is not None:
            points.append((x, y))
    return points


def _thin(points: list[tuple[float, float]]) -> list[tuple[float, float]]:
    every = -(-len(points) // _MOST_POINTS) or 1
    return points[::every]


def _line(axes: Any, points: list[tuple[float, float]], colour: str, label: str) -> None:
    if points:
        axes.plot(*zip(*points, strict=True), color=colour, marker="o", markersize=4, label=label)


def _baseline(run: RunData) -> float | None:
    for metrics in (run.metrics("valid"), run.metrics("test")):
        base = metrics.get("majority_baseline")
        if isinstance(base, dict) and (value := number(base.get("accuracy"))) is not None:
            return value
    return None


def _curve_words(losses: list[tuple[float, float]], quality: dict[str, list[tuple[float, float]]]) -> str:
    parts = [f"training loss from {losses[0][1]:.3f} to {losses[-1][1]:.3f}"] if losses else []
    parts += [f"validation {name} from {p[0][1]:.3f} to {p[-1][1]:.3f}" for name, p in quality.items() if p]
    words = ", ".join(parts)
    return words[:1].upper() + words[1:] + "."


def _matrix(value: Any, size: int) -> np.ndarray[Any, np.dtype[np.float64]] | None:
    try:
        counts = np.array(value, dtype=np.float64)
    except (TypeError, ValueError, OverflowError):
        return None
    if size == 0 or counts.shape != (size, size) or not (counts <= LARGEST).all() or (counts < 0).any():
        return None
    return counts


def _cell(column: int, row: int, share: float) -> Any:
    from matplotlib.patches import Rectangle

    # Opacity over the background of the page gives the right shade in the light and the dark theme.
    return Rectangle((column - 0.48, row - 0.48), 0.96, 0.96, facecolor=SERIES[0], alpha=0.06 + 0.94 * share)


def _tick(name: str) -> str:
    """Return a label of at most 18 characters; without escapes, matplotlib reads text between dollar signs as maths."""
    return (name if len(name) <= 18 else f"{name[:17]}…").replace("$", r"\$")


def _per_worker(steps: Sequence[dict[str, Any]], name: str) -> np.ndarray[Any, np.dtype[np.float64]]:
    """Return the sums over the steps by rank. Steps with a different number of workers than the last are ignored."""
    lists = [step[name] for step in steps if isinstance(step.get(name), list)]
    valid = [values for values in lists if len(values) == len(lists[-1]) and None not in map(number, values)]
    return np.array(valid, dtype=np.float64).sum(axis=0) if valid else np.empty(0)
