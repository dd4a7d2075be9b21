"""Emulated slow workers: when they are slow, by how much, and what is refused."""

from __future__ import annotations

import time

import pytest

from tenor.errors import UsageError
from tenor.training.balancing.mode import EPOCH, OFF, parse_mode
from tenor.training.balancing.shares import parse_caps
from tenor.training.balancing.slowdown import Pace, clock_of, parse_slowdown


def test_slow_periods_begin_and_end() -> None:
    slowdown = parse_slowdown("1:3@200-600, 0:1.5,1:2@600-", size=2)
    assert [slowdown.factor(1, step) for step in (1, 199, 200, 599, 600, 601, 9999)] == [1, 1, 3, 3, 6, 2, 2]
    assert slowdown.factor(0, 1) == slowdown.factor(0, 10**9) == 1.5
    assert parse_slowdown("").factor(0, 1) == 1


def busy(seconds: float) -> None:
    began = time.thread_time()
    while time.thread_time() - began < seconds:
        pass


@pytest.mark.parametrize(("rank", "factor"), [(0, 1), (1, 1), (2, 3), (3, 3)])
@pytest.mark.parametrize("shares_cores", [False, True])
def test_steps_are_stretched_by_their_factor_of_computing_alone(rank: int, factor: int, shares_cores: bool) -> None:
    pace = Pace(parse_slowdown("2:3,3:3"), rank, shares_cores=shares_cores)
    began, worked = time.perf_counter(), time.thread_time()
    for tokens in (100, 300, 200):
        with pace.stretch(5, tokens):
            busy(tokens * 1e-4)
            time.sleep(0.02)  # waiting is not computing
    assert time.perf_counter() - began >= factor * 0.06 + 0.06 - 1e-3
    assert time.thread_time() - worked < 0.12  # the rest was slept


@pytest.mark.serial
def test_who_has_a_core_sleeps_last() -> None:
    pace = Pace(parse_slowdown("1:5"), 1)
    for _ in range(2):
        began = time.perf_counter()
        with pace.stretch(1, 100):
            assert time.perf_counter() - began < 0.01
            busy(0.01)


@pytest.mark.serial
def test_every_other_rank_that_shares_cores_sleeps_first_and_makes_good_for_what_it_overslept() -> None:
    pace = Pace(parse_slowdown("0:5,1:5"), 1, shares_cores=True)
    starts = []
    for seconds in (0.02, 0.02, 0.0):
        began = time.perf_counter()
        with pace.stretch(1, 100):
            starts.append(time.perf_counter() - began)
            busy(seconds)
    assert starts[0] < 0.01  # knows nothing yet
    assert starts[1] >= 0.8 * 4 * 0.02
    assert pace._overslept > 0.03  # the last step took next to nothing
    began = time.perf_counter()
    with pace.stretch(1, 100):
        busy(0.005)
    assert time.perf_counter() - began < 0.02  # in place of 0.025


@pytest.mark.parametrize("few", [0, 1])
def test_a_small_share_tells_nothing_of_a_large_one(few: int) -> None:
    pace = Pace(parse_slowdown("1:5"), 1, shares_cores=True)
    with pace.stretch(1, few):
        busy(0.005)  # a step's fixed cost
    began = time.perf_counter()
    with pace.stretch(1, 1000):
        early = time.perf_counter() - began
    assert early < 0.5  # by the token it would be 16 seconds


@pytest.mark.serial
def test_what_was_overslept_shortens_the_next_sleep_before_computing() -> None:
    pace = Pace(parse_slowdown("1:5"), 1, shares_cores=True)
    for seconds in (0.05, 0.01):  # sleeps 0.16 seconds before the second, which would need 0.04
        with pace.stretch(1, 100):
            busy(seconds)
    began = time.perf_counter()
    with pace.stretch(1, 100):
        assert time.perf_counter() - began < 0.02  # in place of 0.032


def test_a_gpu_s_time_goes_by_the_clock() -> None:
    """The thread sleeps while the device works."""
    pace = Pace(parse_slowdown("0:3"), 0, clock=clock_of("cuda"))
    began = time.perf_counter()
    with pace.stretch(1, 100):
        time.sleep(0.03)
    assert time.perf_counter() - began >= 0.09


@pytest.mark.parametrize(
    "text", ["1", "1:", "a:3", "1:0.5", "1:3@", "1:3@5", "1:-3", "1:3@6-x", "2:3", "1:3@60-20", "1:3@0-10", "1:３"]
)
def test_what_makes_no_sense_is_refused(text: str) -> None:
    with pytest.raises(UsageError, match="slowdown"):
        parse_slowdown(text, size=2)


def test_modes() -> None:
    assert [parse_mode(text) for text in ("off", "epoch", "steps:10")] == [OFF, EPOCH, 10]
    for text in ("", "on", "steps", "steps:", "steps:0", "steps:x", "epoch:2", "steps:３", "steps:²"):
        with pytest.raises(UsageError, match="balance"):
            parse_mode(text)


def test_caps() -> None:
    assert parse_caps("", 2).tolist() == [float("inf")] * 2
    assert parse_caps("900", 2).tolist() == [900, 900]
    assert parse_caps("900:400", 2).tolist() == [900, 400]
    for text in ("x", "0", "1:2:3", "1:-2", "nan:1"):
        with pytest.raises(UsageError, match="token_caps"):
            parse_caps(text, 2)
