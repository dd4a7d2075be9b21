"""Who computes what with a parameter server: pure, events in and decisions out, without sockets, clock or tensors.

A global batch is cut into one lease a worker. A worker is granted one at a time, with the weights of that moment; when
all of a batch are pushed, one update is made of them. A round is a batch. Workers go on to the next batch without
waiting for the rest of this one, and the weights may move on by s rounds between a grant and the update that its push
becomes part of: what is later than that is void, and its lease goes back to the queue. With s = 0 a batch is begun when
the one before is applied: synchronous training. Leases of a lost worker go back to the queue as well, and one that
takes much longer than usual is granted to another worker too; the first to push it wins. So a slow worker never holds
up the others for longer.
"""

from __future__ import annotations

import math
import random
from collections import Counter, deque
from collections.abc import Iterable
from dataclasses import dataclass

PATIENCE = 2.0  # usual times that a lease may take before an idle worker is granted it too
FIRST_GUESS = 30.0  # seconds that a lease usually takes, until one is done
FADE = 0.8


@dataclass(frozen=True)
class Lease:
    """A part of a global batch."""

    epoch: int
    batch: int
    part: int
    parts: int


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
        self.bound = rounds
        self.version = 0  # updates made
        self.done: set[int] = set()  # batches of this epoch
        self.requeued: Counter[str] = Counter()  # leases granted again, by reason
        self.idle: set[int] = set()
        self.grants: dict[int, Grant] = {}  # by worker; void ones are gone from here
        self.kept: dict[Lease, Grant] = {}  # pushed, of batches that are not complete
        self._busy: dict[int, int] = {}  # the sequence number of the push that a worker owes, void or not
        self._sequences: Counter[int] = Counter()
        self._pace: dict[int, float] = {}  # seconds that a lease takes, by worker
        self._again: deque[Lease] = deque()
        self._queue: list[Lease] = []  # of the batch begun last
        self._batches: deque[int] = deque()  # not begun

    def begin(self, epoch: int, num_batches: int, done: Iterable[int] = ()) -> None:
        """Queue the batches of an epoch but those that are done; whatever workers still hold is void."""
        self.epoch, self.num_batches, self.done = epoch, num_batches, set(done)
        for held in (self.grants, self.kept, self._again, self._queue):
            held.clear()
        left = [batch for batch in range(num_batches) if batch not in self.done]
        if self.is_random and self.bound:  # in step the order is that of one process
            random.Random(f"{self.seed} {epoch}").shuffle(left)
        self._batches = deque(left)

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
        self.kept[grant.lease] = grant
        parts = sorted((one for one in self.kept.values() if one.lease.batch == grant.lease.batch), key=_part)
        return self._update(tuple(parts)) if len(parts) == self.size else Decision(True)

    def _update(self, grants: tuple[Grant, ...]) -> Decision:
        staleness = self.version - min(grant.version for grant in grants)
        self.version += 1
        self.done.add(grants[0].lease.batch)
        for grant in grants:
            del self.kept[grant.lease]
        self._void_late()
        return Decision(True, grants, staleness)

    def _void_late(self) -> None:
        for grant in [*self.kept.values(), *self.grants.values()]:
            if self.version - grant.version > self.bound:
                if self.kept.get(grant.lease) is grant:
                    del self.kept[grant.lease]
                else:
                    del self.grants[grant.worker]
                self._put_back(grant.lease, "late")

    def _put_back(self, lease: Lease, reason: str) -> None:
        if not self._holders(lease):
            self._again.append(lease)
            self.requeued[reason] += 1

    def _holders(self, lease: Lease) -> list[Grant]:
        return [grant for grant in self.grants.values() if grant.lease == lease]

    def hand_out(self, now: float) -> list[Grant]:
        """Grants for workers that have nothing to do; to be asked after every event, and now and then."""
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
        """What was put back or is overdue, so that no batch waits for long; else a part of the newest batch, its own
        where it is there; else of the next."""
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


def _part(grant: Grant) -> int:
    return grant.lease.part
