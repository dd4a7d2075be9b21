"""Batches: what is computed together, what is refused, and that each request gets its own results."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Coroutine, Sequence
from typing import Any

import pytest

from tenor.serving.batches import Batcher, BatchLimits, Overloaded, Window


class Work:
    """Doubles texts; waits while `go` is not set."""

    def __init__(self) -> None:
        self.go, self.begun, self.sizes = threading.Event(), threading.Event(), list[int]()

    def __call__(self, texts: list[str]) -> Sequence[str]:
        self.sizes.append(len(texts))
        self.begun.set()
        assert self.go.wait(20)
        return [2 * text for text in texts]


def run(scenario: Callable[[Batcher[str], Work], Coroutine[Any, Any, None]], **limits: Any) -> Work:
    work = Work()

    async def main() -> None:
        values = {"batch_size": 4, "batch_seconds": 0.0, "wait_seconds": 0.1, "queue_size": 10, **limits}
        batcher = Batcher(work, BatchLimits(**values))
        batcher.start()
        try:
            await asyncio.wait_for(scenario(batcher, work), 30)
        finally:
            work.go.set()
            await batcher.close()

    asyncio.run(main())
    return work


async def blocked(batcher: Batcher[str], work: Work) -> asyncio.Task[list[str]]:
    """A request that is being computed until `work.go` is set."""
    task = asyncio.create_task(batcher.compute(["a"]))
    await asyncio.get_running_loop().run_in_executor(None, work.begun.wait, 20)
    return task


def test_requests_that_wait_share_a_batch_and_get_their_own_results() -> None:
    async def scenario(batcher: Batcher[str], work: Work) -> None:
        first = await blocked(batcher, work)
        rest = [asyncio.create_task(batcher.compute([f"{n}", f"{n}x"])) for n in range(3)]
        await asyncio.sleep(0)
        assert batcher.num_waiting == 6
        work.go.set()
        assert await first == ["aa"]
        assert [await task for task in rest] == [[f"{n}{n}", f"{n}x{n}x"] for n in range(3)]

    assert run(scenario).sizes == [1, 4, 2]


def test_requests_within_the_wait_share_a_batch() -> None:
    async def scenario(batcher: Batcher[str], work: Work) -> None:
        work.go.set()
        await asyncio.gather(*(batcher.compute(["a"]) for _ in range(3)))

    assert run(scenario, batch_seconds=0.2).sizes == [3]


def test_a_large_request_is_cut_into_batches_in_order() -> None:
    async def scenario(batcher: Batcher[str], work: Work) -> None:
        work.go.set()
        assert await batcher.compute([str(n) for n in range(10)]) == [2 * str(n) for n in range(10)]

    assert run(scenario).sizes == [4, 4, 2]


def test_a_full_queue_refuses_and_computes_nothing_of_the_request() -> None:
    async def scenario(batcher: Batcher[str], work: Work) -> None:
        tasks = [await blocked(batcher, work), asyncio.create_task(batcher.compute(["b"] * 8))]
        await asyncio.sleep(0)
        with pytest.raises(Overloaded):
            await batcher.compute(["c"] * 3)
        work.go.set()
        await asyncio.gather(*tasks)
        assert batcher.num_waiting == 0
        assert await batcher.compute(["d"]) == ["dd"]

    assert sum(run(scenario, queue_size=10, wait_seconds=100.0, batch_size=8).sizes) == 10


def test_more_texts_on_their_way_than_the_window_are_refused_unless_none_waits() -> None:
    async def scenario(batcher: Batcher[str], work: Work) -> None:
        batcher._window.size = 2
        first = await blocked(batcher, work)
        second = asyncio.create_task(batcher.compute(["b", "b", "b"]))  # nothing waits: a large request is accepted
        await asyncio.sleep(0)
        with pytest.raises(Overloaded):
            await batcher.compute(["c"])
        assert batcher._window.has_refused
        work.go.set()
        assert await first == ["aa"] and await second == ["bb"] * 3

    run(scenario)


def test_a_request_that_was_given_up_is_not_computed() -> None:
    async def scenario(batcher: Batcher[str], work: Work) -> None:
        first = await blocked(batcher, work)
        second = asyncio.create_task(batcher.compute(["b"]))
        await asyncio.sleep(0)
        second.cancel()
        work.go.set()
        assert await first == ["aa"]
        await batcher.compute(["c"])

    assert run(scenario).sizes == [1, 1]


def test_an_error_reaches_all_requests_of_its_batch_and_no_later_one() -> None:
    async def main() -> None:
        def work(texts: list[str]) -> list[str]:
            if "bad" in texts:
                raise ValueError("bad text")
            return texts

        batcher = Batcher(work, BatchLimits(4, 0.01, 1.0, 100))
        batcher.start()
        failed = await asyncio.gather(batcher.compute(["bad"] * 6), batcher.compute(["x"]), return_exceptions=True)
        assert [type(error) for error in failed] == [ValueError, ValueError] or failed[1] == ["x"]
        assert await batcher.compute(["good"]) == ["good"]
        await batcher.close()

    asyncio.run(main())


def window(size: float) -> Window:
    found = Window(BatchLimits(batch_size=40, batch_seconds=0.0, wait_seconds=0.1, queue_size=100))
    found.size = size
    return found


@pytest.mark.parametrize(
    ("size", "has_refused", "waited", "after"),
    [
        (50, True, 0.05, 55),  # too small and fast: grows
        (50, False, 0.05, 50),  # large enough: stays
        (50, True, 0.08, 50),  # close to the limit: stays
        (50, True, 0.11, 40),  # late: shrinks
        (11, True, 0.11, 10),  # not below a quarter of a batch
        (99, True, 0.01, 100),  # not above the queue
    ],
)
def test_the_window_follows_the_waiting_time(size: float, has_refused: bool, waited: float, after: float) -> None:
    found = window(size)
    found.has_refused = has_refused
    found.on_batch(waited, now=10.0)
    assert found.size == pytest.approx(after) and not found.has_refused


def test_texts_that_are_late_for_the_same_reason_shrink_the_window_once() -> None:
    found = window(50)
    for now in (10.0, 10.05, 10.2):
        found.on_batch(0.2, now)
    assert found.size == pytest.approx(50 * 0.8 * 0.8)
