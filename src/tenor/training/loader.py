"""Batches loaded ahead of time in a thread, so that no step waits for reading and padding."""

from __future__ import annotations

import queue
import sys
import threading
from collections.abc import Callable, Iterator
from typing import Generic, TypeVar

T = TypeVar("T")

DEPTH = 3  # batches kept ready

SWITCH_SECONDS = 0.0005  # Python's thread switch interval while training; with the default of 5 ms, steps are slower


class Ahead(Generic[T]):
    """Iterate over make(start), …, make(stop - 1), a few items ahead of the consumer. Use it in a `with` statement."""

    def __init__(self, make: Callable[[int], T], start: int, stop: int, depth: int = DEPTH) -> None:
        self._items: queue.Queue[T | BaseException] = queue.Queue(depth)
        self._cancelled = threading.Event()
        self._range = range(start, stop)
        self._make = make
        self._thread = threading.Thread(target=self._produce, name="tenor-loader", daemon=True)

    def __enter__(self) -> Iterator[T]:
        self._switch_seconds = sys.getswitchinterval()
        sys.setswitchinterval(SWITCH_SECONDS)
        self._thread.start()
        return self._consume()

    def __exit__(self, *_: object) -> None:
        self._cancelled.set()
        self._thread.join()
        sys.setswitchinterval(self._switch_seconds)

    def _consume(self) -> Iterator[T]:
        for _ in self._range:
            item = self._items.get()
            if isinstance(item, BaseException):
                raise item
            yield item

    def _produce(self) -> None:
        for index in self._range:
            try:
                item: T | BaseException = self._make(index)
            except Exception as error:  # the consumer raises it
                item = error
            while not self._cancelled.is_set():
                try:
                    self._items.put(item, timeout=0.1)
                    break
                except queue.Full:
                    continue
            if self._cancelled.is_set() or isinstance(item, BaseException):
                return
