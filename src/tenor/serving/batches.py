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
_SHRINK = 0.8  # of the window, after a text has waited too long
_NARROW = 0.7  # of the longest wait: below it the window grows


class Overloaded(Exception):
    """Too much work is waiting; another attempt makes sense after a second."""


@dataclass(frozen=True)
class BatchLimits:
    """How large batches and the queue may become.

    Attributes:
        batch_size: Texts per batch.
        batch_seconds: How long the first request of a batch waits for others.
        wait_seconds: How long a text may take from its arrival to its result; requests are refused to keep to it.
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
    future: asyncio.Future[Sequence[R]]
    arrived: float  # the time of the event loop


class Window:
    """How many texts may be on their way: as many as have lately been computed within the longest wait.

    The window grows by a little while it is too small for the requests and texts are fast, and shrinks by a share when
    a text was late, as TCP does (Chiu and Jain 1989). So it follows the speed of the model, the length of the texts and
    what else the machine does, without an estimate of any of them.
    """

    def __init__(self, limits: BatchLimits) -> None:
        self._limits = limits
        self._least = max(1.0, limits.batch_size / 4)
        self._shrunk_at = -math.inf
        self.size = 2.0 * limits.batch_size
        self.has_refused = False  # a request, since the last batch

    def on_batch(self, waited: float, now: float) -> None:
        """Adapt to a batch that is done.

        Args:
            waited: Seconds from the arrival of its oldest text to the result.
            now: The time in seconds.
        """
        target = self._limits.wait_seconds
        if waited > target:
            if now - self._shrunk_at > target:  # texts that are late for the same reason count once
                self.size, self._shrunk_at = max(self._least, self.size * _SHRINK), now
        elif waited < _NARROW * target and self.has_refused:
            self.size = min(float(self._limits.queue_size), self.size + self._limits.batch_size / 8)
        self.has_refused = False


class Batcher(Generic[R]):
    """Computes texts in batches, in one thread of its own.

    Args:
        work: Computes a list of texts, in the thread: one result per text.
        limits: Sizes of batches and of the queue.
        on_batch: Called on the event loop with the size of each batch and its seconds.
    """

    def __init__(
        self,
        work: Callable[[list[str]], Sequence[R]],
        limits: BatchLimits,
        on_batch: Callable[[int, float], None] = lambda size, seconds: None,
    ) -> None:
        self._work, self._limits, self._on_batch = work, limits, on_batch
        self._waiting: deque[_Entry[R]] = deque()
        self._arrived = asyncio.Event()
        self._window = Window(limits)
        self._num_running = 0  # texts that are being computed
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
        if self.is_full(len(texts)):
            raise Overloaded
        size = self._limits.batch_size
        entries = [self._add(texts[start : start + size]) for start in range(0, len(texts), size)]
        try:
            return [result for entry in entries for result in await entry.future]
        finally:
            for entry in entries:
                if not entry.future.cancel() and not entry.future.cancelled():
                    entry.future.exception()  # of a request that has failed already: marks it as seen

    def is_full(self, num_texts: int = 1) -> bool:
        """Whether a request is refused: by what waits already, so that a large one is accepted if none waits."""
        is_late = self.num_waiting + self._num_running >= self._window.size
        is_full = bool(self._waiting) and (is_late or self.num_waiting + num_texts > self._limits.queue_size)
        self._window.has_refused |= is_full
        return is_full

    def _add(self, texts: list[str]) -> _Entry[R]:
        loop = asyncio.get_running_loop()
        entry: _Entry[R] = _Entry(texts, loop.create_future(), loop.time())
        self._waiting.append(entry)
        self.num_waiting += len(texts)
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

    def _take(self) -> list[_Entry[R]]:
        """The entries that have waited longest, as many as fit into a batch."""
        batch = [self._waiting.popleft()]
        room = self._limits.batch_size - len(batch[0].texts)
        while self._waiting and len(self._waiting[0].texts) <= room:
            batch.append(self._waiting.popleft())
            room -= len(batch[-1].texts)
        self.num_waiting -= sum(len(entry.texts) for entry in batch)
        return batch

    async def _compute_batch(self, batch: list[_Entry[R]]) -> None:
        texts = [text for entry in batch for text in entry.texts]
        loop, began = asyncio.get_running_loop(), time.perf_counter()
        self._num_running = len(texts)
        try:
            results = await loop.run_in_executor(self._thread, self._work, texts)
        except Exception as error:
            for entry in batch:
                if not entry.future.done():
                    entry.future.set_exception(error)
            return
        finally:
            self._num_running = 0
        self._window.on_batch(loop.time() - batch[0].arrived, loop.time())
        self._on_batch(len(texts), time.perf_counter() - began)
        start = 0
        for entry in batch:
            end = start + len(entry.texts)
            if not entry.future.done():
                entry.future.set_result(results[start:end])
            start = end
