"""The slowest of N workers against many random teams."""

import math

import numpy as np
import pytest

from tenor.planning.costs.stragglers import measured_slowest, normal_slowest, slowest_of


@pytest.mark.parametrize("workers", [1, 2, 5, 40])
def test_the_measured_distribution_agrees_with_many_random_teams(workers: int) -> None:
    rng = np.random.default_rng(workers)
    samples = rng.lognormal(0.0, 0.3, 150)
    teams = rng.choice(samples, (200_000 // workers, workers)).max(axis=1)
    assert measured_slowest(samples, workers) == pytest.approx(teams.mean() / samples.mean(), rel=0.01)


def test_the_normal_formula_is_a_bound_that_gets_tight() -> None:
    rng = np.random.default_rng(0)
    for workers, slack in ((2, 0.7), (1000, 0.6)):
        teams = rng.normal(1.0, 0.05, (2000, workers)).max(axis=1).mean()
        assert teams < normal_slowest(0.05, workers) < teams + slack * 0.05
    assert normal_slowest(0.3, 1) == 1.0


def test_beyond_the_samples_the_slowest_goes_on_growing() -> None:
    samples = np.random.default_rng(1).normal(1.0, 0.1, 100)
    found = [slowest_of(samples, workers) for workers in (1, 2, 64, 100, 101, 1024, 65_536)]
    assert found[0] == 1.0 and found == sorted(found) and found[3] == pytest.approx(found[4], rel=0.002)
    assert found[-1] > samples.max() / samples.mean()
    assert slowest_of(np.ones(50), 1024) == 1.0
    assert math.isfinite(found[-1])
