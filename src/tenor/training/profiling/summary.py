"""Pure functions from the spans of all workers to a table of where a step goes, and a few steps for a drawing."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from typing import Any

from tenor.training.profiling.spans import BACKWARD, EXCHANGE, FORWARD, NAMES, PARTS, READ_AHEAD, STEP, WAIT, Span

FORMAT = 1  # of profile.json
WARMUP_STEPS = 10  # not counted if there are at least twice as many: memory is allocated and code compiled in them
DRAWN_STEPS = 6
OTHER = "other"

Tracks = Mapping[str, Sequence[Span]]  # the name of a worker → its spans


def split_waits(tracks: Tracks) -> dict[str, list[Span]]:
    """Cut each exchange of all workers where the last worker joins it: until then, the others wait.

    The n-th exchange of a step belongs to the n-th exchange of that step on every other worker. An exchange that some
    worker does not have stays whole.
    """
    numbered = {name: _numbered(spans) for name, spans in tracks.items()}
    joined: dict[tuple[int, int], list[float]] = defaultdict(list)
    for found in numbered.values():
        for key, span in found:
            if key is not None:
                joined[key].append(span.start)
    cut: dict[str, list[Span]] = {}
    for name, found in numbered.items():
        cut[name] = []
        for key, span in found:
            last = max(joined[key]) if key is not None and len(joined[key]) == len(tracks) else span.start
            middle = min(max(last, span.start), span.end)
            if middle > span.start:
                cut[name].append(Span(WAIT, span.start, middle, span.step))
            if middle < span.end or middle == span.start:
                cut[name].append(span._replace(start=middle))
    return cut


def _numbered(spans: Sequence[Span]) -> list[tuple[tuple[int, int] | None, Span]]:
    """Each span with (step, number) if it is an exchange, but not one inside forward or backward, as in a pipeline."""
    counts: dict[int, int] = defaultdict(int)
    found: list[tuple[tuple[int, int] | None, Span]] = []
    nested, outer = set(), Span("", 0.0, 0.0, 0)
    for place in range(len(spans) - 1, -1, -1):  # spans are in the order of their ends, so inner ones come first
        if spans[place].name in (FORWARD, BACKWARD):
            outer = spans[place]
        elif outer.start <= spans[place].start and spans[place].end <= outer.end:
            nested.add(place)
    for place, span in enumerate(spans):
        key = None
        if span.name == EXCHANGE and place not in nested:
            key = (span.step, counts[span.step])
            counts[span.step] += 1
        found.append((key, span))
    return found


def mean_parts(spans: Sequence[Span]) -> tuple[list[int], dict[str, float]]:
    """The steps that count, and the mean seconds of each part of them.

    A span inside another one counts for its own part only. The rest of a step is OTHER, so the parts add up to the
    whole step.
    """
    steps = sorted(span.step for span in spans if span.name == STEP)
    counted = set(steps[WARMUP_STEPS:] if len(steps) >= 2 * WARMUP_STEPS else steps)
    totals = dict.fromkeys((*PARTS, OTHER), 0.0)
    inside: list[Span] = []  # the spans that contain the present one, the outermost first
    own = [span for span in reversed(spans) if span.name != READ_AHEAD]  # of equal spans, the outer one ended last
    for span in sorted(own, key=lambda one: (one.start, -one.end)):
        while inside and inside[-1].end <= span.start:
            inside.pop()
        step = inside[0] if inside and inside[0].name == STEP else span
        if step.name == STEP and step.step in counted:
            length = span.end - span.start
            totals[_part(span)] += length
            if inside:
                totals[_part(inside[-1])] -= length
        inside.append(span)
    return sorted(counted), {part: max(0.0, total) / max(1, len(counted)) for part, total in totals.items()}


def _part(span: Span) -> str:
    return span.name if span.name in PARTS else OTHER


def summarise(tracks: Tracks) -> dict[str, Any]:
    """The content of profile.json."""
    means = {name: mean_parts(spans) for name, spans in tracks.items()}
    steps = sorted({step for found, _ in means.values() for step in found})
    return {
        "format": FORMAT,
        "first_step": steps[0] if steps else 0,
        "last_step": steps[-1] if steps else 0,
        "steps": len(steps),
        "parts": list(NAMES),
        "workers": [{"name": name, "steps": len(found), "seconds": parts} for name, (found, parts) in means.items()],
        "timeline": drawn_spans(tracks),
    }


def drawn_spans(tracks: Tracks) -> list[list[float]]:
    """[worker, part, start, end] of the parts of the last steps, in seconds since the first of them began."""
    own = next((spans for spans in tracks.values() if any(span.name == STEP for span in spans)), ())
    steps = [span for span in own if span.name == STEP][-DRAWN_STEPS:]
    if not steps:
        return []
    first, last = steps[0].start, steps[-1].end
    return [
        [worker, NAMES.index(span.name), max(0.0, span.start - first), min(span.end, last) - first]
        for worker, spans in enumerate(tracks.values())
        for span in spans
        if span.name in PARTS and span.start < last and span.end > first
    ]
