"""Spans in the Trace Event Format, which Perfetto (ui.perfetto.dev) and chrome://tracing open.

Every worker is a process of the trace, with one thread for the steps and one for the loader. All workers share one time
line. Workers on several hosts are as well aligned as the clocks of their hosts.
"""

from __future__ import annotations

from typing import Any

from tenor.training.profiling.spans import PARTS, READ_AHEAD, Span
from tenor.training.profiling.summary import Tracks

_STEPS, _LOADER = 0, 1  # numbers of the threads


def trace_events(tracks: Tracks) -> dict[str, Any]:
    """The content of trace.json. Times are in microseconds since the first span."""
    first = min((span.start for spans in tracks.values() for span in spans), default=0.0)
    events: list[dict[str, Any]] = []
    for process, (name, spans) in enumerate(tracks.items()):
        events.append(_named("process_name", process, _STEPS, name))
        events.append(
            {"ph": "M", "name": "process_sort_index", "pid": process, "tid": _STEPS, "args": {"sort_index": process}}
        )
        events.append(_named("thread_name", process, _STEPS, "steps"))
        if any(span.name == READ_AHEAD for span in spans):
            events.append(_named("thread_name", process, _LOADER, "loader"))
        events += [_complete(span, process, first) for span in spans]
    return {"displayTimeUnit": "ms", "traceEvents": events}


def _complete(span: Span, process: int, first: float) -> dict[str, Any]:
    return {
        "ph": "X",
        "name": span.name,
        "cat": "part" if span.name in PARTS else "step",
        "pid": process,
        "tid": _LOADER if span.name == READ_AHEAD else _STEPS,
        "ts": round(1e6 * (span.start - first), 3),
        "dur": round(1e6 * (span.end - span.start), 3),
        "args": {"step": span.step},
    }


def _named(kind: str, process: int, thread: int, name: str) -> dict[str, Any]:
    return {"ph": "M", "name": kind, "pid": process, "tid": thread, "args": {"name": name}}
