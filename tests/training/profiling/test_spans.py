"""Recording spans with a clock that the test moves; without --profile, nothing is recorded."""

from __future__ import annotations

import itertools

import pytest

from tenor.training.profiling import spans
from tenor.training.profiling.spans import (
    BACKWARD,
    FORWARD,
    LOAD,
    OFF,
    READ_AHEAD,
    STEP,
    UPDATE,
    RecordingProfiler,
)


def make(**options: object) -> RecordingProfiler:
    ticks = itertools.count()
    profiler = RecordingProfiler(clock=lambda: float(next(ticks)), **options)  # type: ignore[arg-type]
    profiler.offset = 1000.0
    return profiler


def test_a_step_from_waiting_for_its_batch_to_its_end() -> None:
    profiler, seen = make(), []
    for item in profiler.waiting_for(LOAD, "ab"):
        seen.append(item)
        with profiler.span(FORWARD):
            pass
        profiler.end_step(len(seen))
    assert seen == ["a", "b"]
    first, second = split(profiler)
    assert [(s.name, s.step) for s in first] == [(LOAD, 1), (FORWARD, 1), (STEP, 1)]
    assert [(s.name, s.step) for s in second] == [(LOAD, 2), (FORWARD, 2), (STEP, 2)]
    load, forward, step = first
    assert step.start < load.start < load.end < forward.start < forward.end < step.end
    assert step.start >= 1000.0  # by the clock of the host


def split(profiler: RecordingProfiler) -> tuple[list[spans.Span], list[spans.Span]]:
    found = [span for span in profiler.take() if span.step < 3]
    return found[:3], found[3:]


def test_an_error_of_the_loader_is_passed_on() -> None:
    def items() -> object:
        yield 1
        raise ValueError("bad row")

    with pytest.raises(ValueError, match="bad row"):
        list(make().waiting_for(LOAD, items()))  # type: ignore[arg-type]


def test_the_fence_comes_before_the_end_is_measured_except_in_the_loader() -> None:
    calls: list[str] = []
    profiler = make(fence=lambda: calls.append("fence"))
    with profiler.span(BACKWARD):
        calls.append("work")
    with profiler.span(READ_AHEAD):
        calls.append("read")
    assert calls == ["work", "fence", "read"]


def test_the_oldest_spans_are_dropped(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(spans, "MOST_SPANS", 5)
    profiler = make()
    for step in range(1, 9):
        with profiler.span(UPDATE):
            pass
        profiler.end_step(step)
    profiler.add(1, profiler.spans)
    profiler.add(1, profiler.spans)
    assert len(profiler.others[1]) == 5
    assert [span.step for span in profiler.take()] == [6, 7, 7, 8, 8] and profiler.take() == []


def test_without_profile_nothing_is_recorded_and_items_are_not_wrapped() -> None:
    items = [1, 2]
    assert OFF.waiting_for(LOAD, items) is items
    with OFF.span(FORWARD), OFF.span(BACKWARD):
        pass
    OFF.begin_step()
    OFF.end_step(1)
    OFF.add(0, [])
    assert OFF.take() == [] and not OFF.is_on
    assert OFF.span(FORWARD) is OFF.span(BACKWARD)  # one object for all: nothing is allocated
