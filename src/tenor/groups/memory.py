"""A group of local workers that add up tensors through shared memory.

Waking a thread that waits on a socket can take milliseconds, as long as a whole step of a small model; polling a number
in memory takes almost no time. Each worker writes its tensor into its own slots and counts the slots as written. Every
worker adds up the slots of all ranks, in the order of ranks, and counts them as read, which frees them. The memory has
no name, so it disappears with its processes, however they end. All other messages use gloo.
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
from tenor.groups.base import Pending
from tenor.groups.collective import CollectiveGroup, lost
from tenor.world import World

SLOT_BYTES = 1 << 20  # larger tensors travel in several slots
SLOTS = 8  # per worker
LINE = 64  # bytes per counter: a cache line of its own, so that cores do not compete for it
SPIN_SECONDS = 0.1  # of polling before the first sleep: a core that slept is slower at first, and less regular
SLEEP_SHARE = 0.1  # after that, a sleep between two polls lasts this share of the time waited so far
SECONDS_BETWEEN_CHECKS = 0.05  # of whether the other workers are alive


def can_share_memory(world: World) -> bool:
    """Whether the workers come from Tenor's own launcher on x86 Linux; x86 cores see each other's writes in order.

    Workers with addresses stand for separate hosts and must not share memory.
    """
    is_local = world.launcher == "tenor" or world.rendezvous.startswith("file://")
    return is_local and not world.address and sys.platform == "linux" and platform.machine() == "x86_64"


class MemoryGroup(CollectiveGroup):
    def __init__(self, world: World, timeout: float) -> None:
        super().__init__(world, "gloo", timeout)
        self.timeout = timeout
        has_cores = world.size * torch.get_num_threads() <= usable_cores()
        self.spin_seconds = SPIN_SECONDS if has_cores else 0.0  # otherwise another worker may need the core
        self.handles = {pid: os.pidfd_open(pid) for pid in self._exchange_numbers(os.getpid())}
        self._share()

    def split(self, colour: int) -> MemoryGroup:
        part = super().split(colour)
        part._share()
        return part

    def _exchange_numbers(self, number: int) -> list[int]:
        """The number that each rank passes, over gloo."""
        table = torch.zeros(self.size, dtype=torch.int64)
        table[self.rank] = number
        super().start_sum(table).wait()
        numbers: list[int] = table.tolist()
        return numbers

    def _share(self) -> None:
        self.pids = self._exchange_numbers(os.getpid())
        memory, start = self._map(), 2 * LINE * self.size
        table = np.frombuffer(memory[:start], np.uint64).reshape(2, self.size, LINE // 8)
        self.written, self.read = table[0, :, 0], table[1, :, 0]  # slots so far, by rank
        self.slots = torch.frombuffer(memory[start:], dtype=torch.uint8).view(self.size, SLOTS, SLOT_BYTES)
        self.num_begun = self.num_ended = 0
        self.queue: deque[Tensor] = deque()  # segments that wait for a slot
        self.open: deque[Tensor] = deque()  # segments that are written and not yet summed

    def _map(self) -> memoryview:
        """Shared memory that the first worker creates and the others open through its process."""
        size = 2 * LINE * self.size + self.size * SLOTS * SLOT_BYTES
        own = os.memfd_create("tenor") if self.rank == 0 else -1
        if self.rank == 0:
            os.ftruncate(own, size)
        first = self._exchange_numbers(own)[0]
        file = own if self.rank == 0 else os.open(f"/proc/{self.pids[0]}/fd/{first}", os.O_RDWR)
        memory = memoryview(mmap.mmap(file, size))
        self._exchange_numbers(0)  # returns when all ranks have opened the memory
        os.close(file)
        return memory

    def start_sum(self, tensor: Tensor) -> Pending:
        flat = tensor.detach().view(-1)
        self.queue.extend(flat.split(SLOT_BYTES // flat.element_size()))
        self._begin_some()
        return _Sum(self, self.num_begun + len(self.queue))

    def _begin_some(self) -> None:
        """Write as many segments as fit without waiting, so that backward can continue."""
        while self.queue:
            if len(self.open) == SLOTS:
                if int(self.written.min()) <= self.num_ended:
                    return
                self._end_oldest()
            if int(self.read.min()) < self.num_begun - SLOTS + 1:
                return
            self._begin()

    def _begin(self) -> None:
        segment = self.queue.popleft()
        self._slot(self.rank, self.num_begun, segment).copy_(segment)
        self.open.append(segment)
        self.num_begun += 1
        self.written[self.rank] = self.num_begun

    def end_one(self) -> None:
        """Wait for the sum of one more segment."""
        if not self.open:
            self._wait(self.read, self.num_begun - SLOTS + 1)
            self._begin()
        self._end_oldest()
        self._begin_some()

    def _end_oldest(self) -> None:
        segment, number = self.open.popleft(), self.num_ended
        self._wait(self.written, number + 1)
        segment.copy_(self._slot(0, number, segment))
        for rank in range(1, self.size):
            segment.add_(self._slot(rank, number, segment))
        self.num_ended += 1
        self.read[self.rank] = self.num_ended

    def _slot(self, rank: int, number: int, like: Tensor) -> Tensor:
        return self.slots[rank, number % SLOTS, : like.nbytes].view(like.dtype)

    def _wait(self, counters: NDArray[np.uint64], count: int) -> None:
        """Wait until the counters of all ranks have reached `count`."""
        began = checked = time.monotonic()
        while counters.min() < count:
            now = time.monotonic()
            if now - began < self.spin_seconds:
                os.sched_yield()
                continue
            if now - checked > SECONDS_BETWEEN_CHECKS:
                self._check(now - began)
                checked = now
            time.sleep(min(SLEEP_SHARE * (now - began), SECONDS_BETWEEN_CHECKS))

    def _check(self, seconds: float) -> None:
        poll = select.poll()  # unlike select(), it accepts handles above 1023
        for handle in self.handles.values():
            poll.register(handle, select.POLLIN)
        if gone := poll.poll(0):
            rank = list(self.handles.values()).index(gone[0][0])
            raise WorkerError(f"worker {rank} is gone", remedy="see the message of that worker")
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
