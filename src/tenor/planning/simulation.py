"""Simulates training on workers of any speeds without computing anything: seconds of parts in, seconds of a step out.

Synchronous strategies advance all workers together, so arrays over the workers are enough. With a parameter server
every worker runs at its own pace and they meet in two queues, the server's link and its processor; there, events are
taken in the order of their times (a discrete-event simulation). Without noise, the simulations equal the closed forms:
Amdahl's law, the ring, the tree, and the rate of the slowest queue.
"""

from __future__ import annotations

import heapq
import itertools
import math
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from tenor.planning.costs.overlap import overlapped_seconds

Floats = NDArray[np.float64]

STARTS = 24  # simulated runs with a parameter server, divided by the number of workers


@dataclass(frozen=True, eq=False)
class SimulatedTeam:
    """What every worker does in a step.

    Attributes:
        compute: (workers,) mean seconds of forward and backward.
        update: Seconds after the exchange in which every worker does the same work, such as applying the update.
        noise: Relative compute times to draw from; empty for no noise.
        seed: Of the draws.
    """

    compute: Floats
    update: float
    noise: Floats
    seed: int = 0

    @property
    def size(self) -> int:
        return len(self.compute)

    def draw(self, steps: int) -> Floats:
        """(steps, workers) seconds of forward and backward.

        Every worker gets all relative times in an order of its own, so that a rare slow step is neither missed nor
        counted too often, however few steps are drawn.
        """
        if not len(self.noise):
            return np.broadcast_to(self.compute, (steps, self.size)).copy()
        ordered = np.sort(np.repeat(self.noise, -(-steps // len(self.noise))))
        drawn = np.array([part.mean() for part in np.array_split(ordered, steps)])
        rng = np.random.default_rng(self.seed)
        found: Floats = self.compute * rng.permuted(np.tile(drawn / drawn.mean(), (self.size, 1)), axis=1).T
        return found


@dataclass(frozen=True)
class RingLink:
    """A ring of equal links, on which each worker passes parts of the payload to the next one."""

    payload: float
    latency: float
    bytes_per_s: float

    def finish(self, ready: Floats) -> Floats:
        """When each worker has the sum, if worker i is ready at ready[i]: 2(N − 1) rounds between neighbours.

        A worker begins a round when it has received the previous part and its neighbour is ready for the next one.
        """
        size = len(ready)
        if size == 1:
            return ready
        span = self.latency + self.payload / size / self.bytes_per_s
        times = ready.copy()
        for _ in range(2 * (size - 1)):
            times = np.maximum(times, np.roll(times, 1)) + span
        return times


@dataclass(frozen=True)
class TreeLink:
    """A binomial tree, in which sums travel to the first worker and back."""

    payload: float
    latency: float
    bytes_per_s: float

    def finish(self, ready: Floats) -> Floats:
        """When each worker has the sum, if worker i is ready at ready[i]: 2 ⌈log₂ N⌉ rounds.

        In the round of step 2^k, worker i with i mod 2^(k+1) = 0 receives from worker i + 2^k. The way back is the same
        in the opposite order.
        """
        size, span = len(ready), self.latency + self.payload / self.bytes_per_s
        times = ready.copy()
        rounds = [1 << power for power in range((size - 1).bit_length())]
        for step in rounds:
            receivers = np.arange(0, size - step, 2 * step)
            times[receivers] = np.maximum(times[receivers], times[receivers + step]) + span
        for step in reversed(rounds):
            senders = np.arange(0, size - step, 2 * step)
            times[senders] += span
            times[senders + step] = times[senders]
        return times


Link = RingLink | TreeLink


def simulate_synchronous(team: SimulatedTeam, link: Link, gamma: float, steps: int) -> float:
    """Mean seconds of a step in which all workers add up their gradients.

    Part of the exchange overlaps with computing (see `overlapped_seconds`), which shortens the exchange.
    """
    clock = np.zeros(team.size)
    for compute in team.draw(steps):
        alone = float(link.finish(np.zeros(team.size)).max())
        longest = float(compute.max())
        saved = longest + alone - overlapped_seconds(longest, alone, gamma)
        clock = link.finish(clock + compute) - saved + team.update
        clock[:] = clock.max()
    return float(clock.max()) / steps


def simulate_local(team: SimulatedTeam, link: Link, every: int, rounds: int) -> float:
    """Mean seconds of a step if workers add up their weights only after every `every` steps."""
    clock = np.zeros(team.size)
    for drawn in team.draw(rounds * every).reshape(rounds, every, team.size):
        clock = link.finish(clock + drawn.sum(axis=0) + every * team.update)
    return float(clock.max()) / (rounds * every)


@dataclass(frozen=True)
class Server:
    """A parameter server, its link, and what a lease moves over it.

    Attributes:
        ask: Bytes that a worker sends to name the rows it needs.
        pull: Bytes of weights that the server sends for a lease, in two messages.
        push: Bytes of gradients that a worker sends.
        latency: Seconds of a message from one host to another.
        bytes_per_s: Bandwidth of the server's link, in each direction.
        handle: Seconds in which the server's processor handles one lease.
        update: Seconds in which the server applies a complete update.
    """

    ask: float
    pull: tuple[float, float]
    push: float
    latency: float
    bytes_per_s: float
    handle: float
    update: float

    @property
    def alone_seconds(self) -> float:
        """Seconds of a lease without computing, if no other worker uses the link."""
        return (self.ask + sum(self.pull) + self.push) / self.bytes_per_s + 4 * self.latency + self.handle


class _SharedLink:
    """A link whose bandwidth all messages under way share equally, as TCP connections do.

    A virtual clock runs at the speed that each message gets. A message ends when the virtual clock has advanced by its
    bytes, whatever comes and goes in between, so the order of ends is known (Demers et al. 1989, fair queueing).
    """

    def __init__(self, bytes_per_s: float) -> None:
        self.bytes_per_s = bytes_per_s
        self.now = self.virtual = 0.0
        self.under_way: list[tuple[float, int, int]] = []  # (virtual end, order, worker)

    def begin(self, now: float, num_bytes: float, order: int, worker: int) -> None:
        self._advance(now)
        heapq.heappush(self.under_way, (self.virtual + num_bytes, order, worker))

    def next_end(self) -> float:
        """When the next message ends, if no other begins before."""
        if not self.under_way:
            return math.inf
        left = max(0.0, self.under_way[0][0] - self.virtual)
        return self.now + left * len(self.under_way) / self.bytes_per_s

    def end(self) -> int:
        """End the next message; return its worker."""
        self._advance(self.next_end())
        return heapq.heappop(self.under_way)[2]

    def _advance(self, now: float) -> None:
        if self.under_way:
            self.virtual += (now - self.now) * self.bytes_per_s / len(self.under_way)
        self.now = now


def simulate_server(team: SimulatedTeam, server: Server, steps: int, is_synchronous: bool = False) -> float:
    """Mean seconds of an update with a parameter server; the first third of the updates warms up.

    A lease passes: weights down, names of rows up, rows down, compute, gradients up, the server's processor. A batch
    has one lease per worker, and is applied when all are pushed. A free worker takes its own part of the newest batch,
    then any other part, then the next batch; if `is_synchronous`, only when the batch before is applied.

    Two workers that download at the same time also upload at the same time, and stay together; two that alternate stay
    so. Which of the two happens is chance, so the result is the mean over random starts.
    """
    runs = [_ServerRun(team, server, steps, is_synchronous, start) for start in range(max(1, STARTS // team.size))]
    return sum(run.seconds_per_update() for run in runs) / len(runs)


class _ServerRun:
    """The state of a simulated run with a parameter server."""

    def __init__(self, team: SimulatedTeam, server: Server, steps: int, is_synchronous: bool, start: int) -> None:
        self.team, self.server, self.steps = team, server, steps
        self.draws = replace(team, seed=team.seed + start).draw(steps)
        self.leases = _LeaseQueue(team.size, steps, is_synchronous)
        self.down, self.up = _SharedLink(server.bytes_per_s), _SharedLink(server.bytes_per_s)
        self.free_at = 0.0  # when the server's processor is free
        self.stage = [0] * team.size  # of each worker's lease: the number of its parts that are done
        self.batch = [0] * team.size
        self.count = [0] * team.size  # leases so far
        self.idle: list[int] = []
        self.finished: list[float] = []
        self.order = itertools.count()
        cycle = server.alone_seconds + float(team.compute.mean())
        starts = cycle * np.random.default_rng(start).random(team.size)
        self.events = [(float(when), next(self.order), worker) for worker, when in enumerate(starts)]
        heapq.heapify(self.events)

    def seconds_per_update(self) -> float:
        self._until_done()
        warm = self.steps // 3
        return (self.finished[-1] - (self.finished[warm - 1] if warm else 0.0)) / (self.steps - warm)

    def _until_done(self) -> None:
        while True:
            local = self.events[0][0] if self.events else math.inf
            now = min(local, self.down.next_end(), self.up.next_end())
            if math.isinf(now):
                return
            if now == local:
                self._next_part(now, heapq.heappop(self.events)[2])
                continue
            link = self.down if now == self.down.next_end() else self.up
            self._later(now + self.server.latency, link.end())

    def _later(self, when: float, worker: int) -> None:
        heapq.heappush(self.events, (when, next(self.order), worker))

    def _next_part(self, now: float, worker: int) -> None:
        """Begin the next part of a worker's lease, or take a new lease."""
        server, stage = self.server, self.stage[worker]
        if stage == 0:
            batch = self.leases.take(worker)
            if batch is None:
                self.idle.append(worker)
                return
            self.batch[worker] = batch
            self.down.begin(now, server.pull[0], next(self.order), worker)
        elif stage == 1:
            self.up.begin(now, server.ask, next(self.order), worker)
        elif stage == 2:
            self.down.begin(now, server.pull[1], next(self.order), worker)
        elif stage == 3:
            self._later(now + float(self.draws[self.count[worker] % len(self.draws), worker]), worker)
        elif stage == 4:
            self.up.begin(now, server.push, next(self.order), worker)
        else:
            self._take_push(now, worker)
            return
        self.stage[worker] = stage + 1

    def _take_push(self, now: float, worker: int) -> None:
        """The server handles the gradients, and applies the update if the batch is complete."""
        self.stage[worker] = 0
        self.count[worker] += 1
        self.free_at = max(now, self.free_at) + self.server.handle
        freed = [worker]
        if self.leases.push(self.batch[worker]):
            self.free_at += self.server.update
            self.finished.append(self.free_at)
            freed, self.idle = [worker, *self.idle], []
        for other in freed:
            self._later(self.free_at, other)


class _LeaseQueue:
    """Which batch a free worker computes a part of."""

    def __init__(self, size: int, num_batches: int, is_synchronous: bool) -> None:
        self.size, self.num_batches, self.is_synchronous = size, num_batches, is_synchronous
        self.parts: set[int] = set()  # of the newest batch that nobody has taken
        self.begun = self.applied = 0  # batches
        self.pushed: dict[int, int] = {}

    def take(self, worker: int) -> int | None:
        """The batch of the next lease of a worker; None if there is nothing to do now."""
        if not self.parts:
            if self.begun == self.num_batches or (self.is_synchronous and self.applied < self.begun):
                return None
            self.parts = set(range(self.size))
            self.begun += 1
        self.parts.remove(worker if worker in self.parts else min(self.parts))
        return self.begun - 1

    def push(self, batch: int) -> bool:
        """Count a lease that is done; return whether its batch is complete."""
        self.pushed[batch] = self.pushed.get(batch, 0) + 1
        is_complete = self.pushed[batch] == self.size
        self.applied += is_complete
        return is_complete
