"""Records what a worker does when. Without `--profile`, the base class records nothing and costs nothing.

The parts of a step are: load (waiting for a batch), forward, backward, exchange (sending, receiving and adding up),
wait (for other workers) and update (clipping and the optimizer). Spans may be nested; a part inside another one does
not count as the outer part.
"""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from contextlib import AbstractContextManager, nullcontext
from typing import NamedTuple, TypeVar

T = TypeVar("T")

LOAD, FORWARD, BACKWARD, EXCHANGE, WAIT, UPDATE = "load", "forward", "backward", "exchange", "wait", "update"
PARTS = (LOAD, FORWARD, BACKWARD, EXCHANGE, WAIT, UPDATE)
STEP, READ_AHEAD, VALIDATE, SAVE = "step", "read ahead", "validate", "save"
NAMES = (*PARTS, STEP, READ_AHEAD, VALIDATE, SAVE)  # READ_AHEAD happens in the loader's thread
MOST_SPANS = 40_000  # kept per worker; then the oldest are dropped

_NOTHING = nullcontext()


class Span(NamedTuple):
    """Something that took from `start` to `end`, in seconds since 1970 by the clock of its host."""

    name: str
    start: float
    end: float
    step: int


class Profiler:
    """The profiler of a run without `--profile`."""

    is_on = False

    def span(self, name: str) -> AbstractContextManager[object]:
        """Record the time that the `with` block takes."""
        return _NOTHING

    def waiting_for(self, name: str, items: Iterable[T]) -> Iterable[T]:
        """The same items; each begins a step, and the time until it arrives is recorded as `name`."""
        return items

    def begin_step(self) -> None:
        """A step begins here."""

    def end_step(self, step: int) -> None:
        """The step that began last ends here; `step` is its number."""

    def take(self) -> list[Span]:
        """Remove the spans recorded so far, and return them."""
        return []

    def add(self, worker: int, spans: Iterable[Span]) -> None:
        """Add what another worker recorded."""


OFF = Profiler()


class RecordingProfiler(Profiler):
    """Records spans in memory.

    Args:
        fence: Called before the end of a span is read from the clock; on a GPU, it waits until the work is done.
        clock: Gives the seconds, steadily.
    """

    is_on = True

    def __init__(
        self, fence: Callable[[], object] = lambda: None, clock: Callable[[], float] = time.perf_counter
    ) -> None:
        self.fence, self.clock = fence, clock
        self.offset = time.time() - time.perf_counter()
        self.began = clock()
        self.step = 0  # of the last step that ended
        self.spans: deque[Span] = deque(maxlen=MOST_SPANS)
        self.others: dict[int, deque[Span]] = {}  # spans of other workers

    def span(self, name: str) -> AbstractContextManager[object]:
        return _Recording(self, name)

    def waiting_for(self, name: str, items: Iterable[T]) -> Iterator[T]:
        iterator = iter(items)
        while True:
            self.begin_step()
            try:
                with self.span(name):
                    item = next(iterator)
            except StopIteration:
                return
            yield item

    def begin_step(self) -> None:
        self.began = self.clock()

    def end_step(self, step: int) -> None:
        self.step = step
        self.note(STEP, self.began, self.clock())

    def note(self, name: str, start: float, end: float) -> None:
        """Record a span. STEP is recorded at the end of its step, every other part before it."""
        step = self.step + (name != STEP)
        self.spans.append(Span(name, start + self.offset, end + self.offset, step))

    def take(self) -> list[Span]:
        found = list(self.spans)
        self.spans.clear()
        return found

    def add(self, worker: int, spans: Iterable[Span]) -> None:
        self.others.setdefault(worker, deque(maxlen=MOST_SPANS)).extend(spans)


class _Recording:
    def __init__(self, profiler: RecordingProfiler, name: str) -> None:
        self.profiler, self.name = profiler, name

    def __enter__(self) -> None:
        self.start = self.profiler.clock()

    def __exit__(self, *_: object) -> None:
        if self.name != READ_AHEAD:
            self.profiler.fence()
        self.profiler.note(self.name, self.start, self.profiler.clock())
