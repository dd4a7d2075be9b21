"""Which worker of a parameter server computes which part of a batch: pure decisions, without sockets, clock or tensors.

A global batch is divided into one lease per worker. A worker is granted one lease at a time, together with the present
weights. When all leases of a batch are pushed, they make one update. Workers continue with the next batch without
waiting for the rest of this one. Between a grant and the update that its push becomes part of, the weights may change
by s updates. A grant that is later than that is void, and its lease returns to the queue. With s = 0, a batch begins
when the previous one is applied: this is synchronous training. The leases of a lost worker also return to the queue. A
lease that takes much longer than usual is granted to a second worker, and the first push wins. So a slow worker delays
the others only for a limited time.
"""

from __future__ import annotations

import math
import random
from collections import Counter, deque
from collections.abc import Iterable
from dataclasses import dataclass

OVERDUE = 2.0  # multiple of its usual time after which a lease is also granted to an idle worker
FIRST_GUESS = 30.0  # the usual time of a lease in seconds, until one is pushed
FADE = 0.8  # weight of the past in the usual time of a lease


@dataclass(frozen=True)
class Lease:
    """A part of a global batch, to be computed by one worker."""

    epoch: int
    batch: int
    part: int
    parts: int  # of the batch


@dataclass(frozen=True)
class Grant:
    """A lease that a worker holds; `version` is the number of updates in the weights that it received."""

    worker: int
    sequence: int  # of this worker's grants
    lease: Lease
    version: int
    since: float


@dataclass(frozen=True)
class Verdict:
    """What happens to a push: it is refused, accepted and kept, or it completes an update together with kept ones.

    An update can make other kept pushes too late; these are then refused, too.
    """

    is_accepted: bool
    update: tuple[Grant, ...] = ()  # in order of parts
    staleness: int = 0  # updates since the oldest weights that a push was computed with
    refused: tuple[tuple[int, int], ...] = ()  # (worker, sequence) of pushes that will never be applied


class Leases:
    def __init__(self, size: int, rounds: float, is_random: bool = False, seed: int = 0) -> None:
        self.size, self.is_random, self.seed = size, is_random, seed
        self.bound = rounds
        self.version = 0  # updates made
        self.done: set[int] = set()  # applied batches of this epoch
        self.requeued: Counter[str] = Counter()  # leases granted again, by reason
        self.idle: set[int] = set()
        self.grants: dict[int, Grant] = {}  # by worker, without void ones
        self.kept: dict[Lease, Grant] = {}  # accepted pushes of batches that are not complete
        self._busy: dict[int, int] = {}  # the sequence number of each busy worker's grant, void or not
        self._sequences: Counter[int] = Counter()
        self._pace: dict[int, float] = {}  # the usual seconds of a lease, by worker
        self._again: deque[Lease] = deque()  # leases to grant again
        self._queue: list[Lease] = []  # leases of the newest batch that were never granted
        self._batches: deque[int] = deque()  # batches that have not begun

    def begin(self, epoch: int, num_batches: int, done: Iterable[int] = ()) -> None:
        """Queue the batches of an epoch except those that are done. All earlier grants become void."""
        self.epoch, self.num_batches, self.done = epoch, num_batches, set(done)
        for held in (self.grants, self.kept, self._again, self._queue):
            held.clear()
        left = [batch for batch in range(num_batches) if batch not in self.done]
        if self.is_random and self.bound:  # synchronous training keeps the order of one process
            random.Random(f"{self.seed} {epoch}").shuffle(left)
        self._batches = deque(left)

    @property
    def is_over(self) -> bool:
        return len(self.done) == self.num_batches

    def join(self, worker: int) -> None:
        """A worker is ready: a new one, or one that was replaced."""
        self.lost(worker)
        self.idle.add(worker)

    def lost(self, worker: int) -> None:
        self.idle.discard(worker)
        self._busy.pop(worker, None)
        self._pace.pop(worker, None)
        if (grant := self.grants.pop(worker, None)) is not None:
            self._put_back(grant.lease, "lost")

    def pushed(self, worker: int, sequence: int, now: float) -> Verdict:
        """A worker has pushed its latest grant and is free for the next one. Pushing it again changes nothing."""
        if self._busy.get(worker) != sequence:
            return Verdict(False)
        del self._busy[worker]
        self.idle.add(worker)
        if (grant := self.grants.pop(worker, None)) is None:  # void
            return Verdict(False, refused=((worker, sequence),))
        self._learn_pace(worker, now - grant.since)
        for other in self._holders(grant.lease):  # slower workers with the same lease
            del self.grants[other.worker]
        self.kept[grant.lease] = grant
        parts = sorted((one for one in self.kept.values() if one.lease.batch == grant.lease.batch), key=_part)
        return self._update(tuple(parts)) if len(parts) == self.size else Verdict(True)

    def _update(self, grants: tuple[Grant, ...]) -> Verdict:
        staleness = self.version - min(grant.version for grant in grants)
        self.version += 1
        self.done.add(grants[0].lease.batch)
        for grant in grants:
            del self.kept[grant.lease]
        return Verdict(True, grants, staleness, self._void_late())

    def _void_late(self) -> tuple[tuple[int, int], ...]:
        """Make void all grants that are too late by now; return those that were already pushed."""
        refused = []
        for grant in [*self.kept.values(), *self.grants.values()]:
            if self.version - grant.version > self.bound:
                if self.kept.get(grant.lease) is grant:
                    del self.kept[grant.lease]
                    refused.append((grant.worker, grant.sequence))
                else:
                    del self.grants[grant.worker]
                self._put_back(grant.lease, "late")
        return tuple(refused)

    def undecided(self, worker: int) -> list[int]:
        """Sequence numbers of a worker's kept pushes, which may still be applied or refused."""
        return sorted(grant.sequence for grant in self.kept.values() if grant.worker == worker)

    def _put_back(self, lease: Lease, reason: str) -> None:
        if not self._holders(lease):
            self._again.append(lease)
            self.requeued[reason] += 1

    def _holders(self, lease: Lease) -> list[Grant]:
        return [grant for grant in self.grants.values() if grant.lease == lease]

    def hand_out(self, now: float) -> list[Grant]:
        """Grant leases to idle workers. Call it after every event, and regularly to find overdue leases."""
        made = []
        for worker in sorted(self.idle):
            if (lease := self._next(worker, now)) is not None:
                made.append(self._grant(worker, lease, now))
        return made

    def _grant(self, worker: int, lease: Lease, now: float) -> Grant:
        self.idle.remove(worker)
        self._sequences[worker] += 1
        self._busy[worker] = self._sequences[worker]
        self.grants[worker] = Grant(worker, self._sequences[worker], lease, self.version, now)
        return self.grants[worker]

    def _next(self, worker: int, now: float) -> Lease | None:
        """The next lease for a worker, if there is one.

        Leases to grant again and overdue ones come first, so that no batch waits for long. Then come parts of the
        newest batch, preferably the worker's own part, and then the next batch.
        """
        if self._again:
            return self._again.popleft()
        if (overdue := self._overdue(now)) is not None:
            return overdue
        if not self._queue and self._batches and (self.bound or not (self.grants or self.kept)):
            batch = self._batches.popleft()
            self._queue = [Lease(self.epoch, batch, part, self.size) for part in range(self.size)]
        own = [lease for lease in self._queue if lease.part == worker and not self.is_random]
        lease = next(iter(own or self._queue), None)
        if lease is not None:
            self._queue.remove(lease)
        return lease

    def _overdue(self, now: float) -> Lease | None:
        """The lease that was granted longest ago, if that is much longer than usual."""
        if not self.grants:
            return None
        latest: dict[Lease, float] = {}
        for grant in self.grants.values():
            latest[grant.lease] = max(grant.since, latest.get(grant.lease, -math.inf))
        lease = min(latest, key=latest.__getitem__)
        paces = sorted(self._pace.values()) or [FIRST_GUESS]
        if now - latest[lease] <= OVERDUE * paces[(len(paces) - 1) // 2]:
            return None
        self.requeued["overdue"] += 1
        return lease

    def _learn_pace(self, worker: int, seconds: float) -> None:
        self._pace[worker] = FADE * self._pace.get(worker, seconds) + (1 - FADE) * seconds


def _part(grant: Grant) -> int:
    return grant.lease.part
