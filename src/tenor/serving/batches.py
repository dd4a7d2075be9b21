"""Coalesces requests into batches: one thread computes, a bounded queue waits, and what is too much is refused at once.

Everything but the computation runs on the event loop, so no locks are needed.
"""

from __future__ import annotations

import asyncio
import math
import time
from collections import deque
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Generic, TypeVar

R = TypeVar("R")
_TEXT_COST = 64  # what a text costs in addition to its characters
_MEMORY = 0.9  # weight of the batches before, in the measured speed


class Overloaded(Exception):
    """The queue is full.

    Attributes:
        retry_seconds: Whole seconds after which another attempt makes sense.
    """

    def __init__(self, retry_seconds: int) -> None:
        super().__init__(f"busy for {retry_seconds} s")
        self.retry_seconds = retry_seconds


@dataclass(frozen=True)
class BatchLimits:
    """How large batches and the queue may become.

    Attributes:
        batch_size: Texts per batch.
        batch_seconds: How long the first request of a batch waits for others.
        wait_seconds: Requests are refused while the accepted work takes longer than this.
        queue_size: Texts that may wait.
    """

    batch_size: int
    batch_seconds: float
    wait_seconds: float
    queue_size: int


@dataclass(eq=False)
class _Entry(Generic[R]):
    """Some texts of one request that are computed together."""

    texts: list[str]
    cost: float
    future: asyncio.Future[Sequence[R]]


class Batcher(Generic[R]):
    """Computes texts in batches, in one thread of its own.

    Args:
        work: Computes a list of texts, in the thread: one result per text.
        limits: Sizes of batches and of the queue.
        cost: How expensive a text is, in any unit; the speed is measured in this unit.
        on_batch: Is told the size of each batch and its seconds, on the event loop.
    """

    def __init__(
        self,
        work: Callable[[list[str]], Sequence[R]],
        limits: BatchLimits,
        cost: Callable[[str], float] = lambda text: len(text) + _TEXT_COST,
        on_batch: Callable[[int, float], None] = lambda size, seconds: None,
    ) -> None:
        self._work, self._limits, self._cost, self._on_batch = work, limits, cost, on_batch
        self._waiting: deque[_Entry[R]] = deque()
        self._arrived = asyncio.Event()
        self._outstanding = 0.0  # cost of everything that waits or is being computed
        self._computed, self._seconds = 0.0, 0.0  # cost of recent batches, and how long they took
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="tenor-serve")
        self._runner: asyncio.Task[None] | None = None
        self.num_waiting = 0  # texts

    def start(self) -> None:
        """Start to compute, on the running event loop."""
        self._runner = asyncio.get_running_loop().create_task(self._run())

    async def close(self) -> None:
        """Stop. Texts that still wait are not computed; their requests fail with CancelledError."""
        if self._runner is not None:
            self._runner.cancel()
            await asyncio.wait([self._runner])
        for entry in self._waiting:
            entry.future.cancel()
        self._thread.shutdown()

    async def compute(self, texts: list[str]) -> list[R]:
        """The results of the texts, in their order.

        Raises:
            Overloaded: Too much work is waiting. Nothing of the request was computed.
        """
        self._refuse_if_full(len(texts))
        size = self._limits.batch_size
        entries = [self._add(texts[start : start + size]) for start in range(0, len(texts), size)]
        try:
            found = await asyncio.gather(*(entry.future for entry in entries))
        finally:
            for entry in entries:
                entry.future.cancel()  # of a request that was given up: the entries are skipped
        return [result for some in found for result in some]

    @property
    def _speed(self) -> float:
        """Cost per second; 0 until a batch was measured."""
        return self._computed / self._seconds if self._seconds else 0.0

    def seconds_of_waiting_work(self) -> float:
        """How long the accepted work will take; 0 if nothing has been measured yet."""
        return self._outstanding / self._speed if self._speed else 0.0

    def _refuse_if_full(self, num_texts: int) -> None:
        """Refuse by what waits already, so that a large request is accepted by a service that is not busy."""
        seconds = self.seconds_of_waiting_work()
        is_long = seconds > self._limits.wait_seconds
        if self._waiting and (is_long or self.num_waiting + num_texts > self._limits.queue_size):
            raise Overloaded(max(1, math.ceil(seconds)))

    def _add(self, texts: list[str]) -> _Entry[R]:
        cost = math.fsum(map(self._cost, texts))
        entry: _Entry[R] = _Entry(texts, cost, asyncio.get_running_loop().create_future())
        self._waiting.append(entry)
        self.num_waiting += len(texts)
        self._outstanding += cost
        self._arrived.set()
        return entry

    async def _run(self) -> None:
        while True:
            await self._arrived.wait()
            if self.num_waiting < self._limits.batch_size:
                await asyncio.sleep(self._limits.batch_seconds)
            batch = self._take()
            if not self._waiting:
                self._arrived.clear()
            if wanted := [entry for entry in batch if not entry.future.done()]:
                await self._compute_batch(wanted)
            self._outstanding = max(0.0, self._outstanding - math.fsum(entry.cost for entry in batch))

    def _take(self) -> list[_Entry[R]]:
        """The entries that have waited longest: at most a batch, and at most half of the longest wait as work."""
        batch = [self._waiting.popleft()]
        room = self._limits.batch_size - len(batch[0].texts)
        budget = (self._speed * self._limits.wait_seconds / 2 or math.inf) - batch[0].cost
        while self._waiting and len(self._waiting[0].texts) <= room and self._waiting[0].cost <= budget:
            entry = self._waiting.popleft()
            room -= len(entry.texts)
            budget -= entry.cost
            batch.append(entry)
        self.num_waiting -= sum(len(entry.texts) for entry in batch)
        return batch

    async def _compute_batch(self, batch: list[_Entry[R]]) -> None:
        texts = [text for entry in batch for text in entry.texts]
        began = time.perf_counter()
        try:
            results = await asyncio.get_running_loop().run_in_executor(self._thread, self._work, texts)
        except Exception as error:
            for entry in batch:
                if not entry.future.done():
                    entry.future.set_exception(error)
            return
        seconds = time.perf_counter() - began
        self._measure(math.fsum(entry.cost for entry in batch), seconds)
        self._on_batch(len(texts), seconds)
        start = 0
        for entry in batch:
            end = start + len(entry.texts)
            if not entry.future.done():
                entry.future.set_result(results[start:end])
            start = end

    def _measure(self, cost: float, seconds: float) -> None:
        self._computed = _MEMORY * self._computed + cost
        self._seconds = _MEMORY * self._seconds + max(seconds, 1e-9)
