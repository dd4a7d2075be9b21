"""Where a step goes, against a count of clock ticks; and waits cut out of exchanges, by hand."""

from __future__ import annotations

from collections import Counter

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tenor.training.profiling.spans import (
    BACKWARD,
    EXCHANGE,
    FORWARD,
    LOAD,
    PARTS,
    READ_AHEAD,
    SAVE,
    STEP,
    UPDATE,
    WAIT,
    Span,
)
from tenor.training.profiling.summary import OTHER, WARMUP_STEPS, drawn_spans, mean_parts, split_waits, summarise


@st.composite
def nested(draw: st.DrawFn, start: int, end: int, depth: int = 0) -> list[tuple[str, int, int]]:
    """Spans inside [start, end), properly nested, in the order of their ends."""
    found: list[tuple[str, int, int]] = []
    at = start
    while at < end and draw(st.booleans()):
        first = draw(st.integers(at, end - 1))
        last = draw(st.integers(first + 1, end))
        if depth < 2:
            found += draw(nested(first, last, depth + 1))
        found.append((draw(st.sampled_from(PARTS)), first, last))
        at = last
    return found


@settings(max_examples=60)
@given(st.data(), st.integers(1, 3))
def test_parts_agree_with_counting_ticks(data: st.DataObject, num_steps: int) -> None:
    spans, ticks, at = [], Counter[str](), 0
    for step in range(1, num_steps + 1):
        start, end = at + data.draw(st.integers(0, 3)), at + 30
        inner = data.draw(nested(start, end))
        for tick in range(start, end):  # the innermost span is the shortest one that covers the tick
            covering = [
                (last - first, place, name) for place, (name, first, last) in enumerate(inner) if first <= tick < last
            ]
            ticks[min(covering)[2] if covering else OTHER] += 1
        spans += [Span(name, first, last, step) for name, first, last in inner] + [Span(STEP, start, end, step)]
        spans += [Span(SAVE, end, end + 5, step), Span(READ_AHEAD, start + 1, end + 3, 0)]
        at = end + 5
    counted, means = mean_parts(spans)
    assert counted == list(range(1, num_steps + 1))
    assert means == pytest.approx({part: ticks[part] / num_steps for part in (*PARTS, OTHER)})


def test_the_first_steps_are_not_counted_if_there_are_enough() -> None:
    def slow_start(count: int) -> list[Span]:
        times = [(10 * step, 10 * step + (9 if step <= WARMUP_STEPS else 1), step) for step in range(1, count + 1)]
        return [span for a, b, step in times for span in (Span(LOAD, a, b, step), Span(STEP, a, b, step))]

    assert mean_parts(slow_start(2 * WARMUP_STEPS))[1][LOAD] == 1.0
    assert mean_parts(slow_start(2 * WARMUP_STEPS - 1))[1][LOAD] > 5.0
    assert mean_parts([]) == ([], dict.fromkeys((*PARTS, OTHER), 0.0))


def test_waiting_ends_when_the_last_worker_joins() -> None:
    fast = [Span(BACKWARD, 0, 2, 1), Span(EXCHANGE, 2, 10, 1), Span(EXCHANGE, 11, 12, 1), Span(EXCHANGE, 12, 13, 2)]
    slow = [Span(BACKWARD, 0, 7, 1), Span(EXCHANGE, 7, 10, 1), Span(EXCHANGE, 10.5, 12, 1)]
    cut = split_waits({"a": fast, "b": slow})
    assert cut["a"] == [
        Span(BACKWARD, 0, 2, 1),
        Span(WAIT, 2, 7, 1),
        Span(EXCHANGE, 7, 10, 1),
        Span(EXCHANGE, 11, 12, 1),  # the last to join does not wait
        Span(EXCHANGE, 12, 13, 2),  # the other worker has no such exchange
    ]
    assert cut["b"][2:] == [Span(WAIT, 10.5, 11, 1), Span(EXCHANGE, 11, 12, 1)]


def test_an_exchange_that_does_not_wait_for_others_is_only_cut_to_its_own_length() -> None:
    cut = split_waits({"a": [Span(EXCHANGE, 1, 2, 1)], "b": [Span(EXCHANGE, 5, 6, 1)]})
    assert cut == {"a": [Span(WAIT, 1, 2, 1)], "b": [Span(EXCHANGE, 5, 6, 1)]}


def test_sends_inside_forward_are_not_exchanges_of_all() -> None:
    one = [Span(EXCHANGE, 1, 2, 1), Span(FORWARD, 0, 3, 1), Span(EXCHANGE, 4, 9, 1)]
    other = [Span(FORWARD, 0, 6, 1), Span(EXCHANGE, 6, 9, 1)]
    cut = split_waits({"a": one, "b": other})
    assert cut["a"] == [*one[:2], Span(WAIT, 4, 6, 1), Span(EXCHANGE, 6, 9, 1)]
    assert cut["b"] == other


def test_the_summary_has_every_worker_and_the_last_steps() -> None:
    def steps(worker: int) -> list[Span]:
        times = [(10.0 * step + worker, step) for step in range(1, 31)]
        return [s for at, step in times for s in (Span(UPDATE, at, at + 4, step), Span(STEP, at, at + 8, step))]

    found = summarise({"worker 0": steps(0), "worker 1": steps(1)})
    assert (found["first_step"], found["last_step"], found["steps"]) == (WARMUP_STEPS + 1, 30, 20)
    assert [worker["name"] for worker in found["workers"]] == ["worker 0", "worker 1"]
    assert found["workers"][1]["seconds"][UPDATE] == pytest.approx(4.0)
    assert found["workers"][1]["seconds"][OTHER] == pytest.approx(4.0)
    drawn = drawn_spans({"worker 0": steps(0), "worker 1": steps(1)})
    assert [span[2] for span in drawn if span[0] == 0] == pytest.approx([0, 10, 20, 30, 40, 50])
    assert [span[2] for span in drawn if span[0] == 1] == pytest.approx([1, 11, 21, 31, 41, 51])
    assert {span[1] for span in drawn} == {found["parts"].index(UPDATE)}
    assert drawn_spans({"worker 0": []}) == []
