"""Confusion matrices: rows by true and predicted class, of one run or of several side by side."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tenor.reports.drawing.plot import Plot, PlotData, finish
from tenor.reports.drawing.theme import INK, PAPER, SERIES, canvas
from tenor.reports.values import LARGEST, left_out, readable, tick

MOST_CLASSES = 20  # in a plot; with more, the cells are too small to read
MOST_MATRICES = 6  # side by side
_FEW_CLASSES = 5  # with more, matrices side by side are too small to read

Counts = NDArray[np.float64]


def confusion(metrics: dict[str, Any], classes: Sequence[str], split: str, things: str = "reviews") -> Plot | None:
    """Plot the counts of true classes (rows) and predicted classes (columns), shaded by the share of the true class."""
    counts = _matrix(metrics.get("confusion"), len(classes))
    if counts is None:
        return None
    totals = counts.sum(axis=1)
    note = left_out(len(classes), MOST_CLASSES, "classes")
    names = [readable(name) for name in classes[:MOST_CLASSES]]
    with canvas(5.4, 4.0) as figure:
        shares = _draw(figure.subplots(), counts, names)
        words = " ".join(
            f"Of {int(totals[i]):,} {name} {things}, {int(counts[i, i]):,} ({shares[i, i]:.1%}) were "
            "classified correctly."
            for i, name in enumerate(names)
        )
        title = f"Confusion matrix on the {split} split"
        return finish(figure, title, words + note, _data({"": counts}, names))


def confusions(every: Mapping[str, dict[str, Any]], classes: Sequence[str], split: str) -> Plot | None:
    """Plot the matrices of several runs, given as the metrics of each run by name. None if they are too large."""
    found = {name: _matrix(metrics.get("confusion"), len(classes)) for name, metrics in every.items()}
    known = {name: counts for name, counts in found.items() if counts is not None}
    if len(known) < 2 or len(classes) > _FEW_CLASSES:
        return None
    shown = dict(list(known.items())[:MOST_MATRICES])
    names = [readable(name) for name in classes]
    columns = min(3, len(shown))
    lines = -(-len(shown) // columns)
    with canvas(11.2, 3.3 * lines) as figure:
        grid = figure.subplots(lines, columns, squeeze=False).ravel()
        right = []
        for axes, (name, counts) in zip(grid, shown.items(), strict=False):
            _draw(axes, counts, names)
            axes.set_title(tick(name, 40))
            right.append(f"{name} {counts.trace() / max(counts.sum(), 1):.1%}")
        for axes in grid[len(shown) :]:
            axes.set_visible(False)
        title = f"Confusion matrices on the {split} split"
        words = f"Classified correctly: {', '.join(right)}.{left_out(len(known), MOST_MATRICES, 'runs')}"
        return finish(figure, title, words, _data(shown, names), wide=True)


def _draw(axes: Any, counts: Counts, names: Sequence[str]) -> Counts:
    """Draw one matrix for the first classes; return the shares of the true classes."""
    size = len(names)
    shares: Counts = counts[:size, :size] / np.maximum(counts.sum(axis=1)[:size, None], 1)
    for (row, column), share in np.ndenumerate(shares):
        axes.add_patch(_cell(column, row, share))
        ink = PAPER if share > 0.55 else INK
        axes.text(column, row, f"{int(counts[row, column]):,}\n{share:.1%}", color=ink, ha="center", va="center")
    axes.set(xlim=(-0.5, size - 0.5), ylim=(size - 0.5, -0.5), xlabel="predicted", ylabel="true")
    axes.set_xticks(range(size), [tick(name) for name in names])
    axes.set_yticks(range(size), [tick(name) for name in names])
    axes.grid(False)
    axes.tick_params(length=0)
    axes.spines[:].set_visible(False)
    return shares


def _data(every: Mapping[str, Counts], names: Sequence[str]) -> PlotData:
    size = range(len(names))
    rows = [[run, names[i], names[j], int(m[i, j])] for run, m in every.items() for i in size for j in size]
    return PlotData(["run", "true", "predicted", "rows"], rows)


def _matrix(value: Any, size: int) -> Counts | None:
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
