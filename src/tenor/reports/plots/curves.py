"""Learning curves: training loss, validation accuracy and AUC over epochs and seconds, of one run or several."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from tenor.reports.drawing.plot import Plot, PlotData, finish
from tenor.reports.drawing.theme import FAINT, SERIES, canvas, series_style
from tenor.reports.runs.data import RunData
from tenor.reports.values import left_out, number, sentence, tick

MOST_RUNS = 12  # in a plot; with more, the lines cannot be told apart
_MOST_POINTS = 1000  # about the width of a plot in pixels; more points only make the file larger
_AXES = {"epoch": "epoch", "seconds": "seconds since training began"}
_QUALITY = {"accuracy": "accuracy", "AUC": "auc"}

Points = list[tuple[float, float]]


def learning_curve(run: RunData, over: str) -> Plot | None:
    """Plot training loss, validation accuracy and AUC, and the majority baseline over "epoch" or "seconds"."""
    losses = thin(points(run.epochs, over, "train_loss"))
    quality = {name: thin(points(run.epochs, over, "valid", key)) for name, key in _QUALITY.items()}
    if not losses and not any(quality.values()):
        return None
    steps = thin(points(run.steps, over, "loss")) if over == "seconds" else []
    with canvas(11.2, 3.1) as figure:
        left, right = figure.subplots(1, 2)
        if steps:
            left.plot(*zip(*steps, strict=True), color=SERIES[0], alpha=0.3, linewidth=0.9, label="each step")
        _line(left, losses, color=SERIES[0], label="mean of the epoch")
        for colour, (name, found) in zip(SERIES[1:], quality.items(), strict=False):
            _line(right, found, color=colour, label=name)
        if (base := _baseline(run)) is not None:
            right.axhline(base, color=FAINT, linestyle="--", linewidth=1.2, label="majority baseline (accuracy)")
        left.set_title("Training loss")
        right.set_title("On the validation split")
        _label(figure.axes, over)
        for axes in figure.axes:
            if axes.get_legend_handles_labels()[0]:
                axes.legend(fontsize=9)
        lines = {"training loss of each step": steps, "mean training loss": losses}
        lines |= {f"validation {name}": found for name, found in quality.items()}
        return finish(
            figure, f"Learning curve over {over.rstrip('s')}s", _words(losses, quality), _data(over, lines), True
        )


def learning_curves(runs: Mapping[str, RunData], over: str) -> Plot | None:
    """Plot training loss and validation accuracy of several runs, by name, over "epoch" or "seconds"."""
    shown = dict(list(runs.items())[:MOST_RUNS])
    losses = {name: thin(points(run.epochs, over, "train_loss")) for name, run in shown.items()}
    scores = {name: thin(points(run.epochs, over, "valid", "accuracy")) for name, run in shown.items()}
    if not any(losses.values()) and not any(scores.values()):
        return None
    with canvas(11.2, 3.6) as figure:
        for axes, title, lines in zip(
            figure.subplots(1, 2), ("Training loss", "Validation accuracy"), (losses, scores), strict=True
        ):
            for place, (name, found) in enumerate(lines.items()):
                _line(axes, found, label=tick(name, 40), **series_style(place))
            axes.set_title(title)
        _label(figure.axes, over)
        handles = {
            label: line for axes in figure.axes for line, label in zip(*axes.get_legend_handles_labels(), strict=True)
        }
        columns = min(4, len(handles))
        figure.legend(handles.values(), handles.keys(), fontsize=9, loc="outside lower center", ncols=columns)
        last = ", ".join(f"{name} {found[-1][1]:.3f}" for name, found in scores.items() if found)
        words = f"Validation accuracy at the end: {last}." if last else "No run has a validation split."
        words += left_out(len(runs), MOST_RUNS, "runs")
        data = {f"{name}, training loss": found for name, found in losses.items()}
        data |= {f"{name}, validation accuracy": found for name, found in scores.items()}
        return finish(figure, f"Learning curves over {over.rstrip('s')}s", words, _data(over, data), True)


def points(events: Sequence[dict[str, Any]], over: str, *path: str) -> Points:
    """Return (x, y) for every event in which both are numbers that can be drawn."""
    found = []
    for event in events:
        value: Any = event
        for name in path:
            value = value.get(name) if isinstance(value, dict) else None
        x, y = number(event.get(over)), number(value)
        if x is not None and y is not None:
            found.append((x, y))
    return found


def thin(found: Points) -> Points:
    """Return every n-th point, so that few enough remain, and the last one."""
    every = -(-len(found) // _MOST_POINTS) or 1
    return found if every == 1 else found[::-1][::every][::-1]


def _line(axes: Any, found: Points, **style: Any) -> None:
    if found:
        marker = {"marker": "o", "markersize": 4} if len(found) <= 60 else {}
        axes.plot(*zip(*found, strict=True), **marker, **style)


def _label(every: Sequence[Any], over: str) -> None:
    for axes in every:
        axes.set_xlabel(_AXES[over])
        if over == "epoch":
            axes.xaxis.get_major_locator().set_params(integer=True)


def _data(over: str, lines: Mapping[str, Points]) -> PlotData:
    return PlotData(["line", over, "value"], [[name, x, y] for name, found in lines.items() for x, y in found])


def _baseline(run: RunData) -> float | None:
    for metrics in (run.metrics("valid"), run.metrics("test")):
        base = metrics.get("majority_baseline")
        if isinstance(base, dict) and (value := number(base.get("accuracy"))) is not None:
            return value
    return None


def _words(losses: Points, quality: Mapping[str, Points]) -> str:
    parts = [f"training loss from {losses[0][1]:.3f} to {losses[-1][1]:.3f}"] if losses else []
    parts += [f"validation {name} from {p[0][1]:.3f} to {p[-1][1]:.3f}" for name, p in quality.items() if p]
    return sentence(", ".join(parts))
