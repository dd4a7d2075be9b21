from __future__ import annotations

import pytest

import tenor
from tenor.training.assemble import make_schedule
from tenor.training.optim.schedule import Schedule, scaled_rate


def test_warm_up_rises_from_the_base_to_the_peak_and_decays_to_nothing() -> None:
    schedule = Schedule(base=0.1, peak=0.8, warmup_steps=7, total_steps=17, decay="linear")
    assert [round(schedule(step), 10) for step in (0, 6, 7, 12, 17)] == [0.2, 0.8, 0.8, 0.4, 0.0]


def test_cosine_is_half_way_down_in_the_middle() -> None:
    schedule = Schedule(base=0.0, peak=1.0, warmup_steps=0, total_steps=100, decay="cosine")
    assert schedule(0) == pytest.approx(1.0)
    assert schedule(50) == pytest.approx(0.5)
    assert schedule(100) == pytest.approx(0.0)


def test_the_rate_falls_with_the_time_if_that_is_shorter() -> None:
    schedule = Schedule(base=0.0, peak=1.0, warmup_steps=2, total_steps=102, decay="linear")
    assert schedule(52, 0.1) == pytest.approx(0.5)  # half of the steps are over, and a tenth of the time
    assert schedule(12, 0.75) == pytest.approx(0.25)
    assert schedule(12, 1.5) == 0.0


def test_the_rate_also_falls_if_the_time_ends_within_the_warm_up() -> None:
    schedule = Schedule(base=0.0, peak=1.0, warmup_steps=100, total_steps=400, decay="linear")
    rates = [schedule(step, step / 50) for step in range(51)]  # the time is up after half of the warm-up
    top = rates.index(max(rates))
    assert rates[:top] == sorted(rates[:top]) and rates[top:] == sorted(rates[top:], reverse=True)
    assert rates[top] == pytest.approx(1 / 3, abs=0.02) and rates[50] == 0.0
    assert schedule(49) == pytest.approx(0.5)  # without a limit, only the steps count


@pytest.mark.parametrize(("rule", "rate"), [("linear", 0.8), ("sqrt", 0.1 * 8**0.5), ("capped", 0.4), ("none", 0.1)])
def test_the_rate_grows_with_the_batch(rule: str, rate: float) -> None:
    assert scaled_rate(0.1, 256, 32, rule) == pytest.approx(rate)
    assert scaled_rate(0.1, 256, 0, rule) == pytest.approx(0.1)


def test_a_run_warms_up_and_decays_over_its_epochs() -> None:
    settings = tenor.TrainSettings(lr=0.1, epochs=3, warmup_epochs=0.5, batch_size=256, reference_batch=64)
    expected = Schedule(base=0.1, peak=0.2, warmup_steps=5, total_steps=30, decay="linear")
    assert make_schedule(settings, num_batches=10) == expected  # four times the reference batch: twice the rate


def test_a_rate_that_is_not_scaled_up_rises_from_nothing() -> None:
    settings = tenor.TrainSettings(lr=0.1, epochs=1, warmup_epochs=0.5, decay="cosine")
    expected = Schedule(base=0.0, peak=0.1, warmup_steps=5, total_steps=10, decay="cosine")
    assert make_schedule(settings, num_batches=10) == expected
