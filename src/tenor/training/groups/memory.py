"""A group of local workers whose sums go through shared memory.

Waking a thread that waits on a socket can take milliseconds, as long as a small model's whole step; looking at a number
in memory takes none. Each worker writes its part into slots of its own and counts it as written; everybody adds up all
parts, in order of rank, and counts them as read, which frees the slots. The memory has no name, so nothing is left of
it when its processes are gone, however they went. Everything else a group does is gloo's.
"""

from __future__ import annotations

import mmap
import os
import platform
import select
import sys
import time
from collections import deque

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from tenor.environment import usable_cores
from tenor.errors import WorkerError
from tenor.training.groups.base import Pending
from tenor.training.groups.collective import CollectiveGroup, lost
from tenor.world import World

PIECE = 1 << 20  # bytes of a slot; larger tensors travel in several
SLOTS = 8
LINE = 64  # bytes a counter has to itself, so that cores do not fight over it
SPIN_SECONDS = 0.1  # of looking again at once: a core that sleeps in between comes back slower, and wavers more
PATIENCE = 0.1  # after that: the part of the time waited so far that is slept between two looks
SECONDS_BETWEEN_CHECKS = 0.05  # whether those waited for are alive


def can_share_memory(world: World) -> bool:
    """Between workers of our own launcher, on Linux; on x86, whose cores see each other's writes in their order."""
    is_local = world.launcher == "tenor" or world.rendezvous.startswith("file://")
    return is_local and sys.platform == "linux" and platform.machine() == "x86_64"


class MemoryGroup(CollectiveGroup):
    def __init__(self, world: World, timeout: float) -> None:
        super().__init__(world, "gloo", timeout)
        self.timeout = timeout
        has_cores = world.size * torch.get_num_threads() <= usable_cores()
        self.spin_seconds = SPIN_SECONDS if has_cores else 0.0  # others may need the core
        self.handles = {pid: os.pidfd_open(pid) for pid in self._tell(os.getpid())}
        self._share()

    def split(self, colour: int) -> MemoryGroup:
        part = super().split(colour)
        part._share()
        return part

    def _tell(self, number: int) -> list[int]:
        """Every rank's number, over gloo."""
        table = torch.zeros(self.size, dtype=torch.int64)
        table[self.rank] = number
        super().start_sum(table).wait()
        numbers: list[int] = table.tolist()
        return numbers

    def _share(self) -> None:
        self.pids = self._tell(os.getpid())
        memory, start = self._map(), 2 * LINE * self.size
        table = np.frombuffer(memory[:start], np.uint64).reshape(2, self.size, LINE // 8)
        self.written, self.read = table[0, :, 0], table[1, :, 0]  # pieces so far, by rank
        self.slots = torch.frombuffer(memory[start:], dtype=torch.uint8).view(self.size, SLOTS, PIECE)
        self.num_begun = self.num_ended = 0
        self.queue: deque[Tensor] = deque()  # pieces that wait for a slot
        self.open: deque[Tensor] = deque()  # pieces begun and not yet summed

    def _map(self) -> memoryview:
        """Memory that the first worker makes and the others open through its process."""
        size = 2 * LINE * self.size + self.size * SLOTS * PIECE
        own = os.memfd_create("tenor") if self.rank == 0 else -1
        if self.rank == 0:
            os.ftruncate(own, size)
        first = self._tell(own)[0]
        file = own if self.rank == 0 else os.open(f"/proc/{self.pids[0]}/fd/{first}", os.O_RDWR)
        memory = memoryview(mmap.mmap(file, size))
        self._tell(0)  # by now all have opened it
        os.close(file)
        return memory

    def start_sum(self, tensor: Tensor) -> Pending:
        flat = tensor.detach().view(-1)
        self.queue.extend(flat.split(PIECE // flat.element_size()))
        self._begin_some()
        return _Sum(self, self.num_begun + len(self.queue))

    def _begin_some(self) -> None:
        """As many as there is room for without waiting for anybody: backward goes on meanwhile."""
        while self.queue:
            if len(self.open) == SLOTS:
                if int(self.written.min()) <= self.num_ended:
                    return
                self._end_oldest()
            if int(self.read.min()) < self.num_begun - SLOTS + 1:
                return
            self._begin()

    def _begin(self) -> None:
        piece = self.queue.popleft()
        self._slot(self.rank, self.num_begun, piece).copy_(piece)
        self.open.append(piece)
        self.num_begun += 1
        self.written[self.rank] = self.num_begun

    def end_one(self) -> None:
        """Wait for the sum of one more piece."""
        if not self.open:
            self._wait(self.read, self.num_begun - SLOTS + 1)
            self._begin()
        self._end_oldest()
        self._begin_some()

    def _end_oldest(self) -> None:
        piece, number = self.open.popleft(), self.num_ended
        self._wait(self.written, number + 1)
        piece.copy_(self._slot(0, number, piece))
        for rank in range(1, self.size):
            piece.add_(self._slot(rank, number, piece))
        self.num_ended += 1
        self.read[self.rank] = self.num_ended

    def _slot(self, rank: int, number: int, like: Tensor) -> Tensor:
        return self.slots[rank, number % SLOTS, : like.nbytes].view(like.dtype)

    def _wait(self, counters: NDArray[np.uint64], count: int) -> None:
        """Until every rank has come so far."""
        began = checked = time.monotonic()
        while counters.min() < count:
            now = time.monotonic()
            if now - began < self.spin_seconds:
                os.sched_yield()
                continue
            if now - checked > SECONDS_BETWEEN_CHECKS:
                self._check(now - began)
                checked = now
            time.sleep(min(PATIENCE * (now - began), SECONDS_BETWEEN_CHECKS))

    def _check(self, seconds: float) -> None:
        poll = select.poll()  # unlike select() it takes handles of any number
        for handle in self.handles.values():
            poll.register(handle, select.POLLIN)
        if gone := poll.poll(0):
            rank = list(self.handles.values()).index(gone[0][0])
            raise WorkerError(f"worker {rank} is gone", remedy="see how it failed")
        if seconds > self.timeout:
            raise lost(TimeoutError(f"no answer in {self.timeout:g} seconds"))

    def close(self) -> None:
        for handle in self.handles.values():
            os.close(handle)
        super().close()


class _Sum:
    def __init__(self, group: MemoryGroup, end: int) -> None:
        self.group, self.end = group, end

    def wait(self) -> None:
        while self.group.num_ended < self.end:
            self.group.end_one()
