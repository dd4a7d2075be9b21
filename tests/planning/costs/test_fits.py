"""Fitted lines, curves and Amdahl's law against known numbers and NumPy."""

import math

import numpy as np
import pytest

from tenor.planning.costs.amdahl import fit_amdahl
from tenor.planning.costs.compute import fit_line, largest_share
from tenor.planning.costs.learning import fit_curve


def test_a_line_without_noise_is_found_exactly() -> None:
    x = np.linspace(500, 9000, 60)
    line = fit_line(x, 0.002 + 4e-6 * x)
    assert (line.fixed, line.slope, line.error) == pytest.approx((0.002, 4e-6, 0.0), abs=1e-9)
    assert line.at(1000) == pytest.approx(0.006)


def test_slow_steps_do_not_move_the_line() -> None:
    rng = np.random.default_rng(0)
    x = rng.uniform(500, 20_000, 400)
    y = (0.002 + 4e-6 * x) * rng.normal(1.0, 0.05, 400)
    y[::12] *= 4.0  # pauses of the machine
    line = fit_line(x, y)
    assert line.at(5000) == pytest.approx(0.022, rel=0.02) and line.slope == pytest.approx(4e-6, rel=0.05)
    assert 0.0005 < line.error < 0.01
    slope, fixed = np.polyfit(x, y, 1)  # plain least squares is led astray
    assert abs(fixed + slope * 5000 - 0.022) > 5 * abs(line.at(5000) - 0.022)


def test_no_cost_is_negative() -> None:
    x = np.array([1.0, 2.0, 3.0, 4.0] * 10)
    assert fit_line(x, 5.0 - x).slope == 0.0
    assert fit_line(x, 2.0 * x - 1.5).fixed == 0.0


@pytest.mark.parametrize(("samples", "workers", "most"), [(64, 3, 22), (64, 64, 1), (64, 1000, 1), (10, 1, 10)])
def test_the_largest_share_has_whole_rows(samples: int, workers: int, most: int) -> None:
    assert largest_share(samples, workers) == most / samples


def test_amdahl_is_recovered_from_its_own_times() -> None:
    law = fit_amdahl([(n, 20.0 + 300.0 / n) for n in (1, 2, 4, 8)])
    assert law is not None and (law.serial, law.parallel) == pytest.approx((20.0, 300.0))
    assert law.seconds(16) == pytest.approx(20.0 + 300.0 / 16) and law.error == 0.05


def test_amdahl_agrees_with_weighted_least_squares_and_is_never_negative() -> None:
    points = [(1, 100.0), (2, 61.0), (4, 33.0), (8, 22.0)]
    x, y = np.array([1 / n for n, _ in points]), np.array([t for _, t in points])
    parallel, serial = np.polyfit(x, y, 1, w=1 / y)
    law = fit_amdahl(points)
    assert law is not None and (law.serial, law.parallel) == pytest.approx((serial, parallel))
    better_than_ideal = fit_amdahl([(1, 100.0), (2, 40.0)])
    assert better_than_ideal is not None and better_than_ideal.serial == pytest.approx(0.0, abs=1e-9)
    slower = fit_amdahl([(1, 100.0), (2, 140.0)])
    assert slower is not None and slower.parallel == 0.0
    assert fit_amdahl([(4, 10.0), (4, 11.0)]) is None


def test_a_power_law_goes_on_as_it_began() -> None:
    curve = fit_curve([(1000 * 2**k, 1.0 - 0.2 * 2 ** (-0.3 * k)) for k in range(4)])
    assert curve is not None and curve.exponent == pytest.approx(0.3)
    assert curve.error(8000) == pytest.approx(0.2 * 2 ** (-0.9))
    assert curve.error(16_000) == pytest.approx(0.2 * 2 ** (-1.2))
    assert curve.error(16_000, 1.6) > curve.error(16_000) > curve.error(16_000, -1.6)
    assert curve.samples_for(0.2 * 2 ** (-1.2)) == pytest.approx(16_000, rel=1e-6)
    assert curve.samples_for(0.2 * 2 ** (-0.45)) == pytest.approx(1000 * 2**1.5, rel=1e-6)


def test_a_curve_that_gets_worse_stays_at_its_best_and_may_never_arrive() -> None:
    curve = fit_curve([(1000, 0.8), (2000, 0.9), (3000, 0.85)])
    assert curve is not None and curve.errors == pytest.approx((0.2, 0.1, 0.1))
    flat = fit_curve([(1000, 0.9), (2000, 0.9)])
    assert flat is not None and flat.exponent == 0.0 and math.isinf(flat.samples_for(0.05))
    assert fit_curve([]) is None
    one = fit_curve([(1000, 0.9)])
    assert one is not None and one.error(1000) == pytest.approx(0.1) and one.error(500) > 0.1
