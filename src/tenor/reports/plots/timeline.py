"""Timelines of the workers over a few steps, and where the time of a step goes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from tenor.reports.drawing.plot import Plot, PlotData, finish
from tenor.reports.drawing.theme import FAINT, SERIES, canvas
from tenor.reports.plots.workers import MOST_WORKERS
from tenor.reports.runs.data import RunData
from tenor.reports.runs.profile import Profile, TimelineSpan
from tenor.reports.values import left_out, number, numbers, sentence

SHOWN_STEPS = 8  # of a log without a profile
_COLOURS = {
    "load": SERIES[3],
    "forward": SERIES[0],
    "backward": SERIES[2],
    "compute": SERIES[0],
    "exchange": SERIES[4],
    "wait": SERIES[1],
    "update": SERIES[5],
    "other": FAINT,
}


def timeline(run: RunData) -> Plot | None:
    """Plot what each worker does over a few steps: from the profile, or from the seconds in the log."""
    if run.profile is not None and run.profile.spans:
        return _draw(run.profile.names, run.profile.spans, "Recorded by --profile; the gaps are other work.")
    spans = logged_spans(run.steps)
    count = 1 + max((span.worker for span in spans), default=0)
    if count < 2:
        return None
    note = "From the computing and waiting seconds of the log; --profile records every part."
    return _draw([f"worker {rank}" for rank in range(count)], spans, note)


def step_parts(profile: Profile) -> Plot | None:
    """Plot the mean seconds of a step by part, one bar per worker."""
    if not profile.workers:
        return None
    shown = profile.workers[:MOST_WORKERS]
    parts = list(dict.fromkeys(part for worker in shown for part in worker.seconds))
    with canvas(5.4, max(1.9, 1.2 + 0.4 * len(shown))) as figure:
        axes = figure.subplots()
        left = np.zeros(len(shown))
        for part in parts:
            values = np.array([1e3 * worker.seconds.get(part, 0.0) for worker in shown])
            axes.barh(range(len(shown)), values, left=left, color=_COLOURS.get(part, FAINT), height=0.6, label=part)
            left += values
        axes.set(xlabel="milliseconds per step", ylim=(len(shown) - 0.5, -0.5))
        axes.set_yticks(range(len(shown)), [worker.name for worker in shown])
        axes.grid(False, axis="y")
        figure.legend(*axes.get_legend_handles_labels(), fontsize=9, loc="outside upper center", ncols=4)
        totals = {part: sum(worker.seconds.get(part, 0.0) for worker in shown) for part in parts}
        whole = sum(totals.values()) or 1.0
        words = ", ".join(f"{part} {seconds / whole:.1%}" for part, seconds in totals.items())
        note = f" Mean of steps {profile.first:,} to {profile.last:,}."
        note += left_out(len(profile.workers), MOST_WORKERS, "workers")
        rows = [[worker.name, part, worker.seconds.get(part, 0.0)] for worker in shown for part in parts]
        return finish(
            figure, "Where a step goes", sentence(words) + note, PlotData(["worker", "part", "seconds"], rows)
        )


def logged_spans(steps: Sequence[dict[str, Any]]) -> list[TimelineSpan]:
    """Return what the workers did in the last steps of a log.

    A step ends at its logged second. Each worker first computes, then waits. An event holds the waiting time of the
    step before, so the last event gives no waiting.
    """
    names = ("compute_seconds", "wait_seconds")
    complete = [
        e for e in steps if number(e.get("seconds")) is not None and all(numbers(e.get(name)) for name in names)
    ]
    if len(complete) < 3:
        return []
    tail = complete[-SHOWN_STEPS - 2 :]
    size, spans = len(tail[-1][names[0]]), []
    for before, event, after in zip(tail, tail[1:], tail[2:], strict=False):
        is_single = event.get("step", 0) - before.get("step", 0) == 1 if number(event.get("step")) else False
        if not is_single or any(len(e[name]) != size for e in (event, after) for name in names):
            return []
        for worker in range(min(size, MOST_WORKERS)):
            start = float(before["seconds"])
            middle = start + max(0.0, float(event[names[0]][worker]))
            end = middle + max(0.0, float(after[names[1]][worker]))
            spans += [TimelineSpan(worker, "compute", start, middle), TimelineSpan(worker, "wait", middle, end)]
    return spans


def _draw(names: Sequence[str], spans: Sequence[TimelineSpan], note: str) -> Plot | None:
    shown = [span for span in spans if span.worker < MOST_WORKERS and span.end > span.start]
    if not shown:
        return None
    first = min(span.start for span in shown)
    workers = min(len(names), MOST_WORKERS)
    parts = [part for part in _COLOURS if any(span.part == part for span in shown)]
    with canvas(11.2, max(1.7, 1.1 + 0.42 * workers)) as figure:
        axes = figure.subplots()
        for part in parts:
            for worker in range(workers):
                own = [s for s in shown if s.part == part and s.worker == worker]
                bars = [(1e3 * (s.start - first), 1e3 * (s.end - s.start)) for s in own]
                axes.broken_barh(bars, (worker - 0.36, 0.72), facecolors=_COLOURS[part])
            axes.barh([0], [0], color=_COLOURS[part], label=part)  # for the legend
        axes.set(xlabel="milliseconds", ylim=(workers - 0.5, -0.5), xlim=(0, None))
        axes.set_yticks(range(workers), list(names[:workers]))
        axes.grid(False, axis="y")
        figure.legend(*axes.get_legend_handles_labels(), fontsize=9, loc="outside upper right", ncols=len(parts))
        rows = [[names[s.worker], s.part, s.start - first, s.end - first] for s in shown]
        totals = {part: sum(s.end - s.start for s in shown if s.part == part) for part in parts}
        whole = sum(totals.values()) or 1.0
        words = f"{sentence(', '.join(f'{part} {seconds / whole:.1%}' for part, seconds in totals.items()))} {note}"
        words += left_out(len(names), MOST_WORKERS, "workers")
        data = PlotData(["worker", "part", "start (s)", "end (s)"], rows)
        return finish(figure, "Timeline of the workers over a few steps", words, data, wide=True)
