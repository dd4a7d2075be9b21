"""The leases of a parameter server, without sockets: any order of pushes, lost workers, returns and delays."""

from __future__ import annotations

import math
import random
from collections import Counter

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tenor.training.parameter_server.leases import Grant, Leases

PLANS = st.tuples(
    st.integers(1, 5),  # workers
    st.sampled_from([0, 1, 2, 4, math.inf]),  # rounds
    st.integers(1, 12),  # batches
    st.booleans(),  # random order
    st.integers(0, 2**32),  # seed of the order of events
)


class Team:
    """Workers that hold their grants until a random event lets them push, and checks of the result."""

    def __init__(self, size: int, rounds: float, is_random: bool, seed: int) -> None:
        self.leases = Leases(size, rounds, is_random, seed)
        self.size, self.rounds, self.rng, self.now = size, rounds, random.Random(seed), 0.0
        self.hands: dict[int, Grant | None] = {}  # grants of the workers that are alive
        self.applied: Counter[tuple[int, int, int]] = Counter()  # (epoch, batch, part), counted here
        self.names: Counter[tuple[int, int]] = Counter()  # (worker, sequence)
        self.pushed: list[tuple[int, int]] = []
        self.num_updates = 0
        self.pulled: dict[tuple[int, int], int] = {}  # the number of updates when a grant was made

    def hand_out(self) -> None:
        for grant in self.leases.hand_out(self.now):
            assert self.hands[grant.worker] is None
            self.hands[grant.worker] = grant
            self.pulled[grant.worker, grant.sequence] = self.num_updates

    def push(self, worker: int) -> None:
        grant = self.hands[worker]
        if grant is None:
            return
        self.hands[worker] = None
        self.pushed.append((worker, grant.sequence))
        decision = self.leases.pushed(worker, grant.sequence, self.now)
        for one in decision.update:
            self.applied[one.lease.epoch, one.lease.batch, one.lease.part] += 1
            self.names[one.worker, one.sequence] += 1
            behind = self.num_updates - self.pulled[one.worker, one.sequence]
            assert behind <= decision.staleness <= self.rounds
        self.num_updates += bool(decision.update)

    def disturb(self) -> None:
        """One random event."""
        self.now += self.rng.choice([0.0, 0.1, 1.0, 30.0])
        worker, kind = self.rng.randrange(self.size), self.rng.random()
        if worker not in self.hands or kind < 0.05:
            self.hands[worker] = None
            self.leases.join(worker)
        elif kind < 0.1 and self.pushed:  # a push that arrives twice
            assert not self.leases.pushed(*self.rng.choice(self.pushed), self.now).is_accepted
        elif kind < 0.2:
            if grant := self.hands.pop(worker):
                self.pushed.append((worker, grant.sequence))  # its push may still be under way
            self.leases.lost(worker)
        else:
            self.push(worker)
        self.hand_out()

    def finish(self, num_batches: int) -> None:
        """One worker alone must be able to finish the epoch while the others keep their grants."""
        if 0 not in self.hands:
            self.hands[0] = None
            self.leases.join(0)
        for _ in range(3 * num_batches * self.size + 3):
            self.hand_out()
            if self.leases.is_over:
                return
            self.push(0)
            self.now += 1000.0
        raise AssertionError("it hangs")


@settings(max_examples=150, deadline=None)
@given(PLANS)
def test_each_lease_is_applied_once_within_the_bound_and_nothing_hangs(plan: tuple[int, float, int, bool, int]) -> None:
    size, rounds, num_batches, is_random, seed = plan
    team = Team(size, rounds, is_random, seed)
    for epoch in range(3):
        team.leases.begin(epoch, num_batches)
        for _ in range(team.rng.randrange(6 * num_batches)):
            team.disturb()
            if team.leases.is_over:
                break
        team.finish(num_batches)
    every = {(epoch, batch, part) for epoch in range(3) for batch in range(num_batches) for part in range(size)}
    assert set(team.applied) == every
    assert set(team.applied.values()) == {1} == set(team.names.values())
    assert team.num_updates == 3 * num_batches


@settings(max_examples=40, deadline=None)
@given(PLANS)
def test_without_staleness_the_order_is_that_of_one_process(plan: tuple[int, float, int, bool, int]) -> None:
    """With s = 0, update k is batch k, as in one process."""
    size, _, num_batches, is_random, seed = plan
    team = Team(size, 0, is_random, seed)
    team.leases.begin(0, num_batches, done=range(num_batches // 2))
    while not team.leases.is_over:
        team.disturb()
    batches = [batch for _, batch, part in team.applied if part == size - 1]
    assert batches == list(range(num_batches // 2, num_batches))


def make(size: int, rounds: float, num_batches: int) -> Leases:
    leases = Leases(size, rounds)
    for worker in range(size):
        leases.join(worker)
    leases.begin(0, num_batches)
    return leases


def test_the_lease_of_a_slow_worker_is_granted_again() -> None:
    """Worker 1 pushes nothing while worker 0 runs through the epoch; the lease of worker 1 is granted again in time."""
    leases = make(2, 2, 20)
    first, slow = leases.hand_out(0.0)
    now, pushes = 0.0, 0
    while not leases.is_over:
        now += 1.0
        pushes += leases.pushed(0, first.sequence, now).is_accepted
        if granted := leases.hand_out(now):
            first = granted[0]
    assert now == pushes == 40.0
    assert leases.requeued == {"overdue": 1}
    assert not leases.pushed(1, slow.sequence, now).is_accepted


def test_pushed_leases_that_become_late_are_computed_again() -> None:
    """One worker holds its part for too long, so the pushed parts of the same batch become too late, too."""
    leases = make(3, 1, 9)
    one, two, slow = leases.hand_out(0.0)
    for grant in (one, two):
        assert leases.pushed(grant.worker, grant.sequence, 0.0).is_accepted
    while leases.version < 2:  # the others continue with the next batches, in no time: nothing is overdue
        for grant in leases.hand_out(0.0):
            leases.pushed(grant.worker, grant.sequence, 0.0)
    assert leases.requeued == {"late": 3}
    assert not leases.pushed(slow.worker, slow.sequence, 0.0).is_accepted
    assert {grant.lease.batch for grant in leases.hand_out(0.0)} == {0}


def test_at_the_end_of_an_epoch_an_idle_worker_takes_an_overdue_lease() -> None:
    leases = make(2, math.inf, 1)
    first, slow = leases.hand_out(0.0)
    assert leases.pushed(0, first.sequence, 1.0).is_accepted
    assert leases.hand_out(1.5) == []  # not overdue yet
    (copy,) = leases.hand_out(5.0)
    assert (copy.worker, copy.lease) == (0, slow.lease)
    assert leases.pushed(1, slow.sequence, 6.0).update  # the slow worker is first after all
    assert not leases.pushed(0, copy.sequence, 7.0).is_accepted
    assert leases.is_over and leases.requeued == {"overdue": 1}


def test_the_lease_of_a_lost_worker_is_granted_next() -> None:
    leases = make(2, 4, 10)
    first, other = leases.hand_out(0.0)
    leases.lost(1)
    leases.pushed(0, first.sequence, 1.0)
    (again,) = leases.hand_out(1.0)
    assert (again.worker, again.lease) == (0, other.lease)
    assert leases.requeued == {"lost": 1}


@pytest.mark.parametrize("is_random", [False, True])
def test_own_parts_or_random_order(is_random: bool) -> None:
    leases = Leases(2, 4, is_random, seed=1)
    leases.join(0)
    leases.join(1)
    orders = []
    for epoch in range(2):
        leases.begin(epoch, 40)
        order = []
        while not leases.is_over:
            for grant in reversed(leases.hand_out(0.0)):
                assert is_random or grant.lease.part == grant.worker
                if grant.lease.part == 0:
                    order.append(grant.lease.batch)
                leases.pushed(grant.worker, grant.sequence, 0.0)
        orders.append(order)
    assert sorted(orders[0]) == sorted(orders[1]) == list(range(40))
    assert (orders[0] == orders[1] == list(range(40))) is not is_random
    assert (orders[0] != orders[1]) is is_random
