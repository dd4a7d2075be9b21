"""The progress line names the worker that the others wait for, and no other."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from tenor.progress import Silent
from tenor.training.launching.display import Display
from tenor.training.launching.stragglers import StragglerDetector


class Lines(Silent):
    def __init__(self) -> None:
        self.said: list[str] = []
        self.notes: list[str] = []

    def say(self, line: str) -> None:
        self.said.append(line)

    def advance(self, amount: float, note: str = "") -> None:
        self.notes.append(note)


def show(
    compute: list[float], balance: str = "off", steps: int = 60, shares: list[int] | None = None, **start: bool
) -> Lines:
    lines = Lines()
    display = Display(lines)
    plan = {"step": 0, "total_steps": steps, "rows": 9, "workers": 2, "threads": 1, "alike": True, "can_balance": True}
    display.show({"event": "start", **plan, "balance": balance, **start})
    for step in range(1, steps + 1):
        event: dict[str, Any] = {"event": "step", "epoch": 1, "step": step, "samples": 8, "loss": 0.5}
        clock = {"seconds": 0.4 * step + 9.0 * (step > 6)}  # nine seconds of validation
        seconds = {"compute_seconds": compute, "wait_seconds": [0.0] * len(compute)}
        display.show({**event, **clock, **seconds, "shares": shares or [2] * len(compute)})
        if step == 6:
            display.show({"event": "epoch", "epoch": 1, "train_loss": 0.5, "valid": {}, "samples_per_s": 1, **clock})
    return lines


def test_the_rate_goes_by_the_clock_not_by_what_single_workers_took() -> None:
    lines = show([0.1, 0.3])
    assert "samples/s" not in lines.notes[0]
    assert all(note.endswith("  20 samples/s") for note in lines.notes[1:])


def test_a_straggler_is_named_once_with_a_hint_and_in_the_line() -> None:
    lines = show([0.1, 0.1, 0.3, 0.1])
    named = [line for line in lines.said if "worker" in line and "×" in line]
    assert named == ["worker 2 takes 3.0× as long as the others; --balance steps:10 would give it less of each batch"]
    assert lines.notes[-1] == "worker 2: 3.0×  loss 0.5000  20 samples/s"
    assert lines.notes[2] == "epoch 1  loss 0.5000  20 samples/s"
    assert lines.notes[33] == "worker 2: 3.0×  loss 0.5000  20 samples/s"  # slow in 8 comparisons of 4 steps each
    assert lines.notes[30].startswith("epoch 1")


def test_no_hint_to_what_is_on_already() -> None:
    lines = show([0.1, 0.3], balance="steps:10")
    assert not any("--balance" in line for line in lines.said)
    assert "worker 1: 3.0×" in lines.notes[-1]


def test_no_hint_where_balancing_is_refused() -> None:
    lines = show([0.1, 0.3], can_balance=False)
    assert not any("--balance" in line for line in lines.said)
    assert "worker 1: 3.0×" in lines.notes[-1]


def test_workers_with_unlike_work_are_not_compared() -> None:
    lines = show([0.1, 0.3], alike=False, can_balance=False)
    assert not any("×" in line for line in [*lines.said, *lines.notes])


def test_who_has_no_rows_makes_no_straggler_of_the_others() -> None:
    lines = show([0.1, 0.0001], shares=[8, 0])
    assert not any("×" in line for line in [*lines.said, *lines.notes])


@pytest.mark.parametrize("pause", [0, 1, 100])
def test_noise_and_a_single_pause_make_no_straggler(pause: int) -> None:
    rng = np.random.default_rng(0)
    watch = StragglerDetector()
    for step in range(300):
        seconds = 0.1 * rng.lognormal(0, 0.1, 4)
        seconds[1] *= 50 if step == pause else 1
        assert watch.observe(seconds.tolist()) is None


@pytest.mark.parametrize("seconds", [0.005, 0.1, 3.0])
def test_workers_that_are_slow_in_turns_are_no_stragglers(seconds: float) -> None:
    """A busy machine: one worker is twice as slow for five comparisons, then the other for the next five."""
    watch = StragglerDetector()
    turn = 5 * max(1, round(0.5 / seconds))
    for step in range(20 * turn):
        slow = step // turn % 2
        assert watch.observe([seconds * (1 + (rank == slow)) for rank in range(2)]) is None


def test_one_worker_at_a_time_and_once_until_it_has_recovered() -> None:
    """Worker 1 is slow with a short break, recovers, and is slow again; then worker 0 is slow."""
    lines = Lines()
    display = Display(lines)
    plan = {"step": 0, "total_steps": 99, "rows": 9, "workers": 2, "threads": 1, "alike": True, "can_balance": True}
    display.show({"event": "start", **plan, "balance": "off"})
    phases = [[1.0, 3.0]] * 12 + [[1.0, 1.0]] * 4 + [[1.0, 3.0]] * 9  # wavers: named once
    phases += [[1.0, 1.0]] * 10 + [[1.0, 2.0]] * 10 + [[2.0, 1.0]] * 10
    said, quiet = [], []
    for step, compute in enumerate(phases, 1):
        event: dict[str, Any] = {"event": "step", "epoch": 1, "step": step, "samples": 8, "loss": 0.5}
        display.show({**event, "seconds": float(step), "compute_seconds": compute, "shares": [2, 2]})
        said += [step for line in lines.said if "takes" in line]
        quiet += [step] if lines.notes[-1].startswith("epoch") or step == 1 else []
        lines.said = [line for line in lines.said if "takes" not in line]
    assert said == [8, 43, 53]
    assert quiet == [*range(1, 8), *range(31, 43), *range(51, 53)]


def test_one_worker_alone_is_never_a_straggler() -> None:
    assert all(StragglerDetector().observe([0.1]) is None for _ in range(20))
