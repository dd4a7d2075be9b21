"""How the work was divided: share, computing time and waiting time of each worker, over the steps and in total."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import compress, pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tenor.reports.drawing.plot import Plot, PlotData, finish
from tenor.reports.drawing.theme import SERIES, canvas, series_style
from tenor.reports.runs.data import RunData
from tenor.reports.values import left_out, number, numbers, sentence

MOST_WORKERS = 32  # in a plot
_MOST_POINTS = 150  # each is the mean of neighbouring steps, because single steps are noisy
_MOST_NAMED = 9  # with more, the legend is longer than the plot

Event = dict[str, Any]
Floats = NDArray[np.float64]


def over_steps(run: RunData) -> Plot | None:
    """Plot the share of the samples, computing and waiting time, one line per worker; None for a single worker."""
    columns = _columns(run.steps)
    if any(len(steps) < 2 or values.shape[1] < 2 for steps, values in columns.values()):
        return None
    shares = columns["shares"][1]
    words = _words(shares) + left_out(shares.shape[1], MOST_WORKERS, "workers")
    with canvas(11.2, 3.1) as figure:
        for axes, (name, title) in zip(figure.subplots(1, 3), _TITLES.items(), strict=True):
            steps, values = map(_means, columns[name])
            for rank in range(min(values.shape[1], MOST_WORKERS)):
                if name != "shares" or values[:, rank].any():
                    axes.plot(steps, values[:, rank], **_style(rank, values.shape[1]))
            axes.set(title=title, xlabel="step", ylim=(0, None))
        if values.shape[1] <= _MOST_NAMED:
            axes.legend(fontsize=9)
        return finish(figure, "Share, computing and waiting by worker", words, _data(columns), wide=True)


_TITLES = {
    "shares": "Share of the samples",
    "compute_seconds": "Computing time per step (s)",
    "wait_seconds": "Waiting time per step (s)",
}


def waiting(run: RunData) -> Plot | None:
    """Plot how many seconds each worker computed, and waited for the others, over all steps."""
    compute, wait = _per_worker(run.steps, "compute_seconds"), _per_worker(run.steps, "wait_seconds")
    if not len(compute) or len(compute) != len(wait):
        return None
    note = left_out(len(compute), MOST_WORKERS, "workers")
    compute, wait = compute[:MOST_WORKERS], wait[:MOST_WORKERS]
    with canvas(5.4, max(1.6, 0.9 + 0.4 * len(compute))) as figure:
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
        data = PlotData(["worker", "computing (s)", "waiting (s)"], list(zip(places, compute, wait, strict=True)))
        return finish(figure, "Computing and waiting by worker", sentence(words) + note, data)


def _per_worker(steps: Sequence[Event], name: str) -> Floats:
    """Return the sums over the steps by rank. Steps with a different number of workers than the last are ignored."""
    lists = [step[name] for step in steps if isinstance(step.get(name), list)]
    valid = [values for values in lists if len(values) == len(lists[-1]) and None not in map(number, values)]
    return np.array(valid, dtype=np.float64).sum(axis=0) if valid else np.empty(0)


def _data(columns: dict[str, tuple[Floats, Floats]]) -> PlotData:
    """Return the means that are drawn, one row per point."""
    rows: list[list[Any]] = []
    for name, (steps, values) in columns.items():
        for step, some in zip(_means(steps), _means(values), strict=True):
            rows += [[name, float(step), rank, float(value)] for rank, value in enumerate(some[:MOST_WORKERS])]
    return PlotData(["measure", "step", "worker", "value"], rows)


def _columns(events: Sequence[Event]) -> dict[str, tuple[Floats, Floats]]:
    """Return step numbers and a (steps, workers) table for each measure.

    Steps with a different number of workers than the last step are ignored.
    """
    complete = [e for e in events if number(e.get("step")) and all(numbers(e.get(name)) for name in _TITLES)]
    size = len(complete[-1]["shares"]) if complete else 0
    fits = [all(len(event[name]) == size for name in _TITLES) for event in complete]
    rows = _table([event["shares"] for event in compress(complete, fits)], size)
    steps = np.array([event["step"] for event in compress(complete, fits)], dtype=np.float64)
    columns = {"shares": (steps, rows / np.maximum(rows.sum(axis=1, keepdims=True), 1.0))}
    pairs = list(compress(pairwise(complete), fits[1:]))
    known = [pair for pair in pairs if any(pair[1]["wait_seconds"])]  # the first step after a start reports no waiting
    return columns | {
        "compute_seconds": _per_step(pairs, "compute_seconds", size),
        "wait_seconds": _per_step(known if len(known) > 1 else pairs, "wait_seconds", size),
    }


def _per_step(pairs: Sequence[tuple[Event, Event]], name: str, size: int) -> tuple[Floats, Floats]:
    """Return step numbers and the seconds per step and worker.

    An event holds the computing time of its own step, but the waiting time of the step before. An event for several
    steps holds their sum, and the result has the mean. The first event does not say how many steps it covers, so it is
    ignored.
    """
    steps = np.array([(before["step"], event["step"]) for before, event in pairs], dtype=np.float64).reshape(-1, 2)
    counts = np.maximum(steps[:, 1] - steps[:, 0], 1.0)
    seconds = _table([event[name] for _, event in pairs], size)
    is_of_step_before = (counts == 1) & (name == "wait_seconds")
    return np.where(is_of_step_before, steps[:, 0], steps[:, 1]), seconds / counts[:, None]


def _table(rows: Sequence[Sequence[float]], size: int) -> Floats:
    return np.array(rows, dtype=np.float64).reshape(len(rows), size)


def _means(values: Floats) -> Floats:
    """Return means over neighbouring steps, at most _MOST_POINTS of them."""
    spans = np.array_split(values, min(len(values), _MOST_POINTS))
    return np.stack([span.mean(axis=0) for span in spans])


def _style(rank: int, size: int) -> dict[str, Any]:
    if size > _MOST_NAMED:
        return {"color": SERIES[0], "alpha": 0.4, "linewidth": 0.8}
    return {**series_style(rank), "linewidth": 1.4, "label": f"worker {rank}"}


def _words(shares: Floats) -> str:
    sharers = np.flatnonzero(shares.any(axis=0))  # of workers that share one model, only one counts the rows
    first, last = shares[0, sharers], shares[-1, sharers]
    if len(sharers) > _MOST_NAMED:
        spread = f"from {last.min():.1%} to {last.max():.1%}"
        return f"In the last step, the shares of the samples of {len(last)} workers range {spread}."
    moves = [f"worker {rank} from {a:.0%} to {b:.0%}" for rank, a, b in zip(sharers, first, last, strict=True)]
    return f"Shares of the samples in the first and the last step: {', '.join(moves)}."
