"""How the work was spread: each worker's share, computing and waiting over the steps."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import compress, pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tenor.reports.plots import Plot
from tenor.reports.run_data import RunData, number
from tenor.reports.svg import SERIES, canvas, inline

_MOST_POINTS = 150  # each the mean of neighbouring steps: single ones are noise to the eye
_MOST_NAMED = 9  # beyond that a legend is longer than the plot
_DASHES = ("-", "--", ":")

Event = dict[str, Any]
Floats = NDArray[np.float64]


def over_steps(run: RunData) -> Plot | None:
    """Share of the samples, seconds of computing and of waiting, one line a worker; None for a lone worker."""
    columns = _columns(run.steps)
    if any(len(steps) < 2 or values.shape[1] < 2 for steps, values in columns.values()):
        return None
    words = _words(columns["shares"][1])
    with canvas(11.2, 3.1) as figure:
        for axes, (name, title) in zip(figure.subplots(1, 3), _TITLES.items(), strict=True):
            steps, values = map(_means, columns[name])
            for rank in range(values.shape[1]):
                if name != "shares" or values[:, rank].any():
                    axes.plot(steps, values[:, rank], **_style(rank, values.shape[1]))
            axes.set(title=title, xlabel="step", ylim=(0, None))
        if values.shape[1] <= _MOST_NAMED:
            axes.legend(fontsize=9)
        return Plot(_TITLE, inline(figure, "workers", _TITLE, words), words, wide=True)


_TITLE = "Share, computing and waiting by worker"
_TITLES = {
    "shares": "Share of the samples",
    "compute_seconds": "Seconds of computing a step",
    "wait_seconds": "Seconds of waiting a step",
}


def _columns(events: Sequence[Event]) -> dict[str, tuple[Floats, Floats]]:
    """Step numbers and (steps, workers) of each measure; steps with another number of workers are left out."""
    whole = [e for e in events if number(e.get("step")) and all(_numbers(e.get(name)) for name in _TITLES)]
    size = len(whole[-1]["shares"]) if whole else 0
    fine = [all(len(event[name]) == size for name in _TITLES) for event in whole]
    rows = _table([event["shares"] for event in compress(whole, fine)], size)
    steps = np.array([event["step"] for event in compress(whole, fine)], dtype=np.float64)
    columns = {"shares": (steps, rows / np.maximum(rows.sum(axis=1, keepdims=True), 1.0))}
    pairs = list(compress(pairwise(whole), fine[1:]))
    told = [pair for pair in pairs if any(pair[1]["wait_seconds"])]  # after a start no waiting is known yet
    return columns | {
        "compute_seconds": _a_step(pairs, "compute_seconds", size),
        "wait_seconds": _a_step(told if len(told) > 1 else pairs, "wait_seconds", size),
    }


def _a_step(pairs: Sequence[tuple[Event, Event]], name: str, size: int) -> tuple[Floats, Floats]:
    """Seconds at the step they belong to: of computing each event tells its own, of waiting those of the step before.
    One that stands for many steps tells their sum, of which the mean is drawn; so the first, which does not say for how
    many it stands, is left out."""
    steps = np.array([(before["step"], event["step"]) for before, event in pairs], dtype=np.float64).reshape(-1, 2)
    counts = np.maximum(steps[:, 1] - steps[:, 0], 1.0)
    seconds = _table([event[name] for _, event in pairs], size)
    is_late = (counts == 1) & (name == "wait_seconds")
    return np.where(is_late, steps[:, 0], steps[:, 1]), seconds / counts[:, None]


def _table(rows: Sequence[Sequence[float]], size: int) -> Floats:
    return np.array(rows, dtype=np.float64).reshape(len(rows), size)


def _numbers(values: Any) -> bool:
    return isinstance(values, list) and None not in map(number, values)


def _means(values: Floats) -> Floats:
    """Means over neighbouring steps, at most so many."""
    pieces = np.array_split(values, min(len(values), _MOST_POINTS))
    return np.stack([piece.mean(axis=0) for piece in pieces])


def _style(rank: int, size: int) -> dict[str, Any]:
    if size > _MOST_NAMED:
        return {"color": SERIES[0], "alpha": 0.4, "linewidth": 0.8}
    dash = _DASHES[rank // len(SERIES) % len(_DASHES)]
    return {"color": SERIES[rank % len(SERIES)], "linestyle": dash, "linewidth": 1.4, "label": f"worker {rank}"}


def _words(shares: Floats) -> str:
    sharers = np.flatnonzero(shares.any(axis=0))  # of those that hold parts of one model, one counts the rows
    first, last = shares[0, sharers], shares[-1, sharers]
    if len(sharers) > _MOST_NAMED:
        spread = f"from {last.min():.1%} to {last.max():.1%}"
        return f"At the end the shares of the samples of {len(last)} workers went {spread}."
    moves = [f"worker {rank} from {a:.0%} to {b:.0%}" for rank, a, b in zip(sharers, first, last, strict=True)]
    return f"Shares of the samples, first and last step: {', '.join(moves)}."
