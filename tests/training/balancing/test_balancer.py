"""The balancer with simulated workers: shares settle, follow changes of speed, and ignore noise."""

from __future__ import annotations

import json

import numpy as np
import pytest
from helpers.simulated import Floats, History, simulate, steady

from tenor.training.balancing.balancer import Balancer
from tenor.training.balancing.costs import Costs
from tenor.training.balancing.fit import CostFit

SIZES = [2, 3, 7, 16, 64, 256]


def mixed(size: int, seed: int = 0) -> tuple[Floats, Floats]:
    """Workers up to four times slower than the fastest, in both costs."""
    slowness = np.random.default_rng(seed).uniform(1.0, 4.0, size)
    slowness[0], slowness[-1] = 1.0, 4.0
    return 3e-3 * slowness, 25e-6 * slowness


def settle(size: int, seed: int, every: int) -> History:
    fixed, per_token = mixed(size, seed)
    return simulate(size, 60, lambda _: steady(fixed, per_token), seed=seed, every=every)


def change(size: int, seed: int, factor: float, every: int, at: int = 60) -> History:
    """One worker becomes `factor` times slower (or faster) in the middle."""
    fixed, per_token = mixed(size, seed)
    later = np.ones(size)
    later[seed % size] = factor
    after = steady(fixed * later, per_token * later)
    return simulate(size, 120, lambda step: after if step >= at else steady(fixed, per_token), seed=seed, every=every)


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("every", [3, 5])
def test_shares_settle_within_20_steps_of_ten_percent_noise(size: int, seed: int, every: int) -> None:
    history = settle(size, seed, every)
    assert history.errors[0] > 0.15
    assert history.settled_after(0) <= 20
    assert max(history.excess[25:]) < 0.15


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("factor", [3.0, 1.5, 1 / 3])
@pytest.mark.parametrize("every", [3, 5])
def test_shares_settle_within_30_steps_of_a_change(size: int, factor: float, every: int) -> None:
    history = change(size, 1, factor, every)
    assert history.settled_after(60) <= 30
    assert max(history.excess[95:]) < 0.15


def test_one_step_after_the_warm_up_is_enough_to_relieve_a_worker_three_times_slower() -> None:
    balancer, equal = Balancer(2), np.array([4000.0, 4000.0])
    balancer.observe(equal, np.array([9.0, 0.1]))  # libraries load
    assert balancer.decide(equal) is None
    balancer.observe(equal, np.array([0.1, 0.3]))
    costs = balancer.decide(equal)
    assert costs is not None
    np.testing.assert_allclose(costs.share_out(8000.0), [6000.0, 2000.0], rtol=1e-6)


@pytest.mark.soak
@pytest.mark.parametrize("size", range(2, 257, 11))
@pytest.mark.parametrize("every", [3, 5])
def test_shares_settle_at_every_size(size: int, every: int) -> None:
    for seed in range(10):
        assert settle(size, seed, every).settled_after(0) <= 20
        assert change(size, seed, 3.0, every).settled_after(60) <= 30
        assert change(size, seed, 1 / 3, every).settled_after(60) <= 30


def test_a_lone_stall_changes_nothing() -> None:
    fixed, per_token = mixed(4)

    def costs(step: int) -> Costs:
        stall = np.array([1.0, 20.0 if step in (50, 51, 80) else 1.0, 1.0, 1.0])
        return steady(fixed * stall, per_token * stall)

    stalled, calm = (
        simulate(4, 110, costs, noise=0.02),
        simulate(4, 110, lambda _: steady(fixed, per_token), noise=0.02),
    )
    np.testing.assert_allclose(stalled.shares[109], calm.shares[109], rtol=0.03)
    assert stalled.num_changes(48) <= calm.num_changes(48) + 1


def test_a_worker_that_all_but_stops_keeps_a_little_and_comes_back() -> None:
    fixed, per_token = mixed(4)

    def costs(step: int) -> Costs:
        slow = np.array([1.0, 1.0, 20.0 if 50 <= step < 120 else 1.0, 1.0])
        return steady(fixed * slow, per_token * slow)

    history = simulate(4, 200, costs)
    assert history.shares[49][2] > 0.1
    assert history.shares[119][2] < 0.05
    assert history.settled_after(120) <= 40


def test_drifting_speeds_are_followed() -> None:
    fixed, per_token = mixed(8)

    def costs(step: int) -> Costs:  # every worker wavers by up to 40 % over some 600 steps
        waver = 1.0 + 0.4 * np.sin(step / 96 + np.arange(8))
        return steady(fixed * waver, per_token * waver)

    history = simulate(8, 900, costs, noise=0.05)
    unbalanced = simulate(8, 900, costs, noise=0.05, every=0)
    assert np.mean(history.excess[30:]) < 0.12
    assert np.mean(unbalanced.excess[30:]) > 0.3


@pytest.mark.parametrize("size", [2, 8, 64])
def test_equal_workers_are_left_alone(size: int) -> None:
    changes = [
        simulate(size, 200, lambda _: steady(np.full(size, 3e-3), np.full(size, 25e-6)), seed=s).num_changes()
        for s in range(4)
    ]
    assert np.mean(changes) < 4  # of 40 decisions


def test_more_noise_does_not_mean_more_changes() -> None:
    fixed, per_token = mixed(8)
    noisy = simulate(8, 400, lambda _: steady(fixed, per_token), noise=0.3)
    assert noisy.num_changes(50) < 25  # of 70 decisions
    assert np.mean(noisy.excess[50:]) < 0.25


def test_its_state_survives_json() -> None:
    rng = np.random.default_rng(0)
    one, two = Balancer(3), Balancer(3)
    for step in range(40):
        tokens = rng.uniform(1000, 5000, 3)
        seconds = tokens * [1e-5, 3e-5, 2e-5] * rng.lognormal(0, 0.1, 3)
        one.observe(tokens, seconds)
        if step == 20:
            two.restore(json.loads(json.dumps(one.state())))
            two.observe(tokens, 9 * seconds)  # the first step after a start, not learned from
        elif step > 20:
            two.observe(tokens, seconds)
    first, second = one.decide(np.ones(3)), two.decide(np.ones(3))
    assert first is not None and second is not None
    np.testing.assert_array_equal(first.per_token, second.per_token)
    np.testing.assert_array_equal(first.fixed, second.fixed)


def observed(fit: CostFit, steps: int, seconds_per_token: float, seed: int = 0) -> None:
    """Steps of one worker with many lengths, where the time depends only on the tokens."""
    for tokens in np.random.default_rng(seed).uniform(1000, 5000, steps):
        fit.observe(np.array([tokens]), np.array([tokens * seconds_per_token]))


def test_a_change_too_small_to_be_found_is_learned_as_old_steps_fade() -> None:
    fit = CostFit(1)
    observed(fit, 300, 1e-5)
    observed(fit, 80, 1.03e-5)
    assert fit.estimate()[1][0] == pytest.approx(1.03e-5, rel=2e-3)


def test_a_step_far_off_is_kept_out_of_the_fit() -> None:
    fit = CostFit(1)
    observed(fit, 50, 1e-5)
    before = fit.estimate()
    observed(fit, 1, 20e-5)
    np.testing.assert_array_equal(fit.estimate(), before)
