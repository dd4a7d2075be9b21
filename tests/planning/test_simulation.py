"""The simulation against closed forms, to 1 % and closer."""

import numpy as np
import pytest

from tenor.planning.costs.communication import ring_seconds, tree_seconds
from tenor.planning.costs.overlap import overlapped_seconds
from tenor.planning.costs.stragglers import measured_slowest
from tenor.planning.simulation import (
    RingLink,
    Server,
    SimulatedTeam,
    TreeLink,
    simulate_local,
    simulate_server,
    simulate_synchronous,
)

QUIET = np.empty(0)
NO_LINK = RingLink(0.0, 0.0, 1.0)


def equal(workers: int, seconds: float, update: float = 0.0) -> SimulatedTeam:
    return SimulatedTeam(np.full(workers, seconds), update, QUIET)


def server(**changes: float | tuple[float, float]) -> Server:
    free = {
        "ask": 0.0,
        "pull": (0.0, 0.0),
        "push": 0.0,
        "latency": 0.0,
        "bytes_per_s": 1e9,
        "handle": 0.0,
        "update": 0.0,
    }
    return Server(**{**free, **changes})  # type: ignore[arg-type]


@pytest.mark.parametrize("workers", [1, 2, 16, 1024])
def test_amdahl(workers: int) -> None:
    """Work that is divided and work that is not: T(N) = serial + parallel / N."""
    team = equal(workers, 0.8 / workers, update=0.2)
    assert simulate_synchronous(team, NO_LINK, 1.0, 10) == pytest.approx(0.2 + 0.8 / workers, rel=0.01)


@pytest.mark.parametrize("workers", [2, 7, 1024])
def test_the_ring(workers: int) -> None:
    link = RingLink(4e6, 5e-4, 1.25e8)
    expected = 0.05 + ring_seconds(4e6, workers, 5e-4, 1.25e8) + 0.01
    assert simulate_synchronous(equal(workers, 0.05, 0.01), link, 1.0, 5) == pytest.approx(expected, rel=0.01)
    local = simulate_local(equal(workers, 0.05, 0.01), link, 8, 4)
    assert local == pytest.approx(0.06 + ring_seconds(4e6, workers, 5e-4, 1.25e8) / 8, rel=0.01)


@pytest.mark.parametrize("workers", [1, 2, 7, 1024])
def test_the_tree(workers: int) -> None:
    link = TreeLink(4e6, 5e-4, 1.25e8)
    exchange = tree_seconds(4e6, workers, 5e-4, 1.25e8)
    expected = 0.05 + exchange + 0.01
    assert simulate_synchronous(equal(workers, 0.05, 0.01), link, 1.0, 5) == pytest.approx(expected, rel=0.01)
    local = simulate_local(equal(workers, 0.05, 0.01), link, 8, 4)
    assert local == pytest.approx(0.06 + exchange / 8, rel=0.01)


def test_a_tree_waits_for_the_last_worker_only_where_it_passes() -> None:
    # The fifth of six workers is ready at 9. It hears from the sixth (10), and the first from the fifth (11). On the
    # way back the first tells the fifth (12), then the third (13), then the second, and the fifth the sixth (13).
    times = TreeLink(0.0, 1.0, 1.0).finish(np.array([0.0, 0.0, 0.0, 0.0, 9.0, 0.0]))
    assert times.tolist() == [14.0, 14.0, 14.0, 14.0, 13.0, 13.0]


@pytest.mark.parametrize("gamma", [1.0, 1.5, 8.0])
def test_overlap_shortens_the_step_as_the_formula_says(gamma: float) -> None:
    link = RingLink(4e6, 0.0, 1.25e8)
    expected = overlapped_seconds(0.05, ring_seconds(4e6, 4, 0.0, 1.25e8), gamma)
    assert simulate_synchronous(equal(4, 0.05), link, gamma, 5) == pytest.approx(expected, rel=0.01)


def test_noise_makes_a_step_as_long_as_the_slowest_worker() -> None:
    noise = np.random.default_rng(0).lognormal(0.0, 0.2, 200)
    team = SimulatedTeam(np.full(8, 0.1), 0.0, noise)
    assert simulate_synchronous(team, NO_LINK, 1.0, 4000) == pytest.approx(0.1 * measured_slowest(noise, 8), rel=0.01)
    assert simulate_local(team, NO_LINK, 50, 40) < 0.1 * (1 + (measured_slowest(noise, 8) - 1) / 3)


def test_a_ring_waits_for_the_last_worker() -> None:
    ready = np.array([0.0, 0.0, 3.0, 0.0])
    assert RingLink(0.0, 0.1, 1.0).finish(ready).max() == pytest.approx(3.0 + 6 * 0.1)
    assert RingLink(5.0, 0.1, 1.0).finish(np.array([2.0])) == pytest.approx(2.0)


@pytest.mark.parametrize("workers", [1, 4, 64])
def test_a_server_without_costs_lets_workers_run_at_their_speed(workers: int) -> None:
    assert simulate_server(equal(workers, 0.1), server(), 12) == pytest.approx(0.1, rel=0.01)


def test_fast_workers_take_the_parts_of_slow_ones() -> None:
    """Workers that compute 10 and 3.3 leases a second do 6.7 batches of two leases."""
    team = SimulatedTeam(np.array([0.1, 0.3]), 0.0, QUIET)
    assert simulate_server(team, server(), 300) == pytest.approx(2 / (1 / 0.1 + 1 / 0.3), rel=0.01)
    assert simulate_server(team, server(), 300, is_synchronous=True) == pytest.approx(0.3, rel=0.01)


def test_the_slowest_queue_of_a_server_sets_the_pace() -> None:
    """Each lease keeps the processor busy for 20 ms, and 16 workers bring 16 leases a batch."""
    assert simulate_server(equal(16, 0.01), server(handle=0.02), 60) == pytest.approx(16 * 0.02, rel=0.01)
    slow_link = server(pull=(1e6, 0.0), bytes_per_s=1e8)
    assert simulate_server(equal(48, 0.01), slow_link, 40) == pytest.approx(48 * 0.01, rel=0.03)


def test_one_worker_pays_for_every_part_of_a_lease() -> None:
    one = server(ask=1e5, pull=(1e6, 2e6), push=3e6, latency=0.01, bytes_per_s=1e8, handle=0.004, update=0.002)
    expected = 0.05 + (1e5 + 3e6 + 3e6) / 1e8 + 4 * 0.01 + 0.006
    assert simulate_server(equal(1, 0.05), one, 30) == pytest.approx(expected, rel=0.01)


def test_two_workers_lie_between_taking_turns_and_getting_in_each_others_way() -> None:
    both = server(pull=(5e6, 0.0), push=5e6, bytes_per_s=1e8)
    apart, together = 0.05 + 0.05 + 0.01, 2 * 0.05 + 2 * 0.05 + 0.01
    assert apart < simulate_server(equal(2, 0.01), both, 24) < together


def test_the_same_seed_gives_the_same_result() -> None:
    noise = np.random.default_rng(0).lognormal(0.0, 0.3, 50)
    found = [simulate_server(SimulatedTeam(np.full(5, 0.1), 0.0, noise, seed), server(), 20) for seed in (1, 1, 2)]
    assert found[0] == found[1] != found[2]
