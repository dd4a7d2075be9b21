"""Who computes what with a parameter server: pure, events in and decisions out, without sockets, clock or tensors.

The epoch's global batches are a queue of leases. A worker is granted one at a time, with the weights of that moment;
what it pushes is applied once, or refused. With a bound of s rounds a round is one update a worker, and a lease a whole
batch: a grant that the weights have moved on from by more than the bound is void, and its lease goes back to the queue.
With s = 0 a batch is cut into one lease a worker, and one update is made of all of them: synchronous training. Leases
of a lost worker go back to the queue as well. When the queue is empty, a lease that takes much longer than usual is
granted to an idle worker too; the first to push it wins. So a slow worker never holds up the others for longer.
"""

from __future__ import annotations

import math
import random
from collections import Counter, deque
from collections.abc import Iterable
from dataclasses import dataclass
from itertools import pairwise

PATIENCE = 2.0  # usual times that a lease may take before an idle worker is granted it too
FIRST_GUESS = 30.0  # seconds that a lease usually takes, until one is done
FADE = 0.8


@dataclass(frozen=True)
class Lease:
    """A part of a global batch."""

    epoch: int
    batch: int
    part: int = 0
    parts: int = 1


@dataclass(frozen=True)
class Grant:
    """A lease in a worker's hands; `version` counts the updates in the weights that it got."""

    worker: int
    sequence: int  # of this worker's grants
    lease: Lease
    version: int
    since: float


@dataclass(frozen=True)
class Decision:
    """What becomes of a push: not accepted, accepted and kept, or (with others kept before) an update to apply."""

    is_accepted: bool
    update: tuple[Grant, ...] = ()  # in order of parts
    staleness: int = 0  # updates since the weights that the oldest was computed with


class Leases:
    def __init__(self, size: int, rounds: float, is_random: bool = False, seed: int = 0) -> None:
        self.size, self.is_random, self.seed = size, is_random, seed
        self.is_synchronous = not rounds
        self.parts = size if self.is_synchronous else 1
        self.bound = rounds * size  # in updates
        self.version = 0
        self.done: set[int] = set()  # batches of this epoch
        self.requeued: Counter[str] = Counter()  # leases granted again, by reason
        self.idle: set[int] = set()
        self.grants: dict[int, Grant] = {}  # by worker; void ones are gone from here
        self._busy: dict[int, int] = {}  # the sequence number of the push that a worker owes, void or not
        self._sequences: Counter[int] = Counter()
        self._pace: dict[int, float] = {}  # seconds that a lease takes, by worker
        self._again: deque[Lease] = deque()
        self._queues: list[list[Lease]] = []  # what comes next is last; one a worker, or one for all
        self._closed: deque[int] = deque()  # batches whose leases are not in the queues yet
        self._kept: dict[int, Grant] = {}  # pushed parts of a batch that is not complete

    def begin(self, epoch: int, num_batches: int, done: Iterable[int] = ()) -> None:
        """Queue the batches of an epoch but those that are done; whatever workers still hold is void."""
        self.epoch, self.num_batches, self.done = epoch, num_batches, set(done)
        self.grants.clear()
        self._again.clear()
        self._kept.clear()
        left = [batch for batch in range(num_batches) if batch not in self.done]
        self._closed = deque(left if self.is_synchronous else ())
        self._queues = self._deal([] if self.is_synchronous else [Lease(epoch, batch) for batch in left])

    def _deal(self, leases: list[Lease]) -> list[list[Lease]]:
        """To each worker its own stretch of the leases, or to all the same ones in random order."""
        if self.is_random:
            shuffled = list(leases)
            random.Random(f"{self.seed} {self.epoch} {len(self.done)}").shuffle(shuffled)
            return [shuffled]
        bounds = [len(leases) * number // self.size for number in range(self.size + 1)]
        return [leases[start:stop][::-1] for start, stop in pairwise(bounds)]

    @property
    def is_over(self) -> bool:
        return len(self.done) == self.num_batches

    def join(self, worker: int) -> None:
        """A worker that is new, or came back with nothing in its hands."""
        self.lost(worker)
        self.idle.add(worker)

    def lost(self, worker: int) -> None:
        self.idle.discard(worker)
        self._busy.pop(worker, None)
        self._pace.pop(worker, None)
        if (grant := self.grants.pop(worker, None)) is not None:
            self._put_back(grant.lease, "lost")

    def pushed(self, worker: int, sequence: int, now: float) -> Decision:
        """A worker is done with its latest grant, and free for the next; what it pushes again changes nothing."""
        if self._busy.get(worker) != sequence:
            return Decision(False)
        del self._busy[worker]
        self.idle.add(worker)
        if (grant := self.grants.pop(worker, None)) is None:  # void
            return Decision(False)
        self._learn_pace(worker, now - grant.since)
        for other in self._holders(grant.lease):  # overtaken
            del self.grants[other.worker]
        self._kept[grant.lease.part] = grant
        return self._update() if len(self._kept) == self.parts else Decision(True)

    def _update(self) -> Decision:
        grants = tuple(grant for _, grant in sorted(self._kept.items()))
        self._kept.clear()
        staleness = self.version - min(grant.version for grant in grants)
        self.version += 1
        self.done.add(grants[0].lease.batch)
        for grant in list(self.grants.values()):
            if self.version - grant.version > self.bound:
                del self.grants[grant.worker]
                self._put_back(grant.lease, "late")
        return Decision(True, grants, staleness)

    def _put_back(self, lease: Lease, reason: str) -> None:
        if not self._holders(lease):
            self._again.append(lease)
            self.requeued[reason] += 1

    def _holders(self, lease: Lease) -> list[Grant]:
        return [grant for grant in self.grants.values() if grant.lease == lease]

    def hand_out(self, now: float) -> list[Grant]:
        """Grants for workers that have nothing to do; to be asked after every event, and now and then."""
        if self._closed and not any(self._queues) and not (self._again or self.grants or self._kept):
            batch = self._closed.popleft()
            self._queues = self._deal([Lease(self.epoch, batch, part, self.parts) for part in range(self.parts)])
        made = []
        for worker in sorted(self.idle):
            if (lease := self._next(worker) or self._overdue(now)) is not None:
                made.append(self._grant(worker, lease, now))
        return made

    def _grant(self, worker: int, lease: Lease, now: float) -> Grant:
        self.idle.remove(worker)
        self._sequences[worker] += 1
        self._busy[worker] = self._sequences[worker]
        self.grants[worker] = Grant(worker, self._sequences[worker], lease, self.version, now)
        return self.grants[worker]

    def _next(self, worker: int) -> Lease | None:
        """What was put back, else something of its own, else something of the worker with most left."""
        if self._again:
            return self._again.popleft()
        queue = self._queues[worker % len(self._queues)] or max(self._queues, key=len)
        return queue.pop() if queue else None

    def _overdue(self, now: float) -> Lease | None:
        """The lease that has been out longest, where that is much longer than usual."""
        if not self.grants:
            return None
        latest: dict[Lease, float] = {}
        for grant in self.grants.values():
            latest[grant.lease] = max(grant.since, latest.get(grant.lease, -math.inf))
        lease = min(latest, key=latest.__getitem__)
        paces = sorted(self._pace.values()) or [FIRST_GUESS]
        if now - latest[lease] <= PATIENCE * paces[(len(paces) - 1) // 2]:
            return None
        self.requeued["overdue"] += 1
        return lease

    def _learn_pace(self, worker: int, seconds: float) -> None:
        self._pace[worker] = FADE * self._pace.get(worker, seconds) + (1 - FADE) * seconds
