"""Formulas of messages against a ring that passes parts around one by one."""

import math

import pytest

from tenor.groups import estimate_ring_bytes
from tenor.planning.costs.communication import ring_bytes, ring_seconds, shared_memory_seconds, tree_seconds
from tenor.planning.costs.overlap import overlapped_seconds


def naive_ring(payload: float, workers: int, latency: float, rate: float) -> tuple[float, float]:
    """Pass the parts of a vector around a ring until every worker has the whole sum; (seconds, bytes of a worker)."""
    sums = [[{worker} for _ in range(workers)] for worker in range(workers)]  # who is in each part, by worker
    seconds = sent = 0.0
    part_bytes = payload / workers
    for round_ in range(2 * (workers - 1)):
        moved = []
        for worker in range(workers):
            part = (worker - round_) % workers
            moved.append(((worker + 1) % workers, part, set(sums[worker][part])))
        for to, part, who in moved:
            sums[to][part] = who if len(who) == workers else sums[to][part] | who
        seconds += latency + part_bytes / rate
        sent += part_bytes
    assert all(len(part) == workers for own in sums for part in own)
    return seconds, sent


@pytest.mark.parametrize("workers", [2, 3, 8, 33])
def test_the_ring_takes_as_long_as_passing_parts_around(workers: int) -> None:
    seconds, sent = naive_ring(9e6, workers, 2e-4, 1.25e8)
    assert ring_seconds(9e6, workers, 2e-4, 1.25e8) == pytest.approx(seconds)
    assert (
        ring_bytes(9e6, workers) == pytest.approx(sent) == pytest.approx(estimate_ring_bytes(9_000_000, workers), 1e-6)
    )


def naive_tree(payload: float, workers: int, latency: float, rate: float) -> tuple[float, float]:
    """Halve the workers that still have something to pass on until one has the sum; (seconds, mean bytes sent)."""
    seconds = sent = 0.0
    alive = [{worker} for worker in range(workers)]
    while len(alive) > 1:
        pairs = [alive[place : place + 2] for place in range(0, len(alive), 2)]
        sent += sum(payload for pair in pairs if len(pair) == 2)
        alive = [set().union(*pair) for pair in pairs]
        seconds += latency + payload / rate
    assert alive == [set(range(workers))]
    return 2 * seconds, 2 * sent / workers


@pytest.mark.parametrize("workers", [2, 3, 4, 5, 33, 1024])
def test_the_tree_takes_as_long_as_halving_the_workers(workers: int) -> None:
    seconds, sent = naive_tree(9e6, workers, 2e-4, 1.25e8)
    assert tree_seconds(9e6, workers, 2e-4, 1.25e8) == pytest.approx(seconds)
    assert ring_bytes(9e6, workers) == pytest.approx(sent)


def test_one_worker_sends_nothing() -> None:
    assert ring_seconds(1e9, 1, 1.0, 1.0) == ring_bytes(1e9, 1) == shared_memory_seconds(1e9, 1, 1.0, 1.0) == 0
    assert tree_seconds(1e9, 1, 1.0, 1.0) == 0


def test_shared_memory_writes_once_and_reads_all() -> None:
    written_and_read = sum(1e6 for _ in range(1)) + sum(1e6 for _ in range(4))
    assert shared_memory_seconds(1e6, 4, 0.5, 1e6) == 0.5 + written_and_read / 1e6


@pytest.mark.parametrize(("gamma", "expected"), [(1.0, 7.0), (2.0, 5.0), (math.inf, 4.0), (200.0, 4.0)])
def test_overlap_lies_between_one_after_the_other_and_at_once(gamma: float, expected: float) -> None:
    assert overlapped_seconds(3.0, 4.0, gamma) == pytest.approx(expected) == overlapped_seconds(4.0, 3.0, gamma)
    assert overlapped_seconds(0.0, 0.0, gamma) == 0.0 and overlapped_seconds(1e-200, 1e-180, gamma) > 0
