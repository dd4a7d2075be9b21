"""Clients that send requests to a service for a time and measure each answer: `python -m tenor.bench.http_load`.

Runs in a process of its own, so that the clients and the service do not share an interpreter. A client sends its next
request as soon as it has an answer, also after a refusal: this is the worst case for the service.
"""

from __future__ import annotations

import asyncio
import itertools
import json
import sys
import time
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any, cast

_END = b"\r\n\r\n"
_TIMEOUT = 30.0  # seconds without an answer


@dataclass
class Answers:
    """The seconds of all answers by status, and how often a connection failed."""

    seconds: dict[int, list[float]] = field(default_factory=dict)
    failures: int = 0

    def add(self, status: int, seconds: float) -> None:
        self.seconds.setdefault(status, []).append(seconds)

    def count(self, status: int) -> int:
        return len(self.seconds.get(status, ()))

    def others(self) -> int:
        """Answers that are neither 200 nor 503, and failures."""
        return self.failures + sum(len(found) for status, found in self.seconds.items() if status not in (200, 503))


def percentile(values: Sequence[float], share: float) -> float:
    """The smallest value that at least `share` of the values do not exceed; 0 without values."""
    ordered = sorted(values)
    return ordered[max(0, -int(-share * len(ordered) // 1) - 1)] if ordered else 0.0


@dataclass(frozen=True)
class LoadPlan:
    """What to send where."""

    host: str
    port: int
    clients: int
    seconds: float
    texts: list[str]


async def send_load(plan: LoadPlan) -> Answers:
    """Let all clients send requests until the time is over; requests that are on their way are still awaited."""
    loop, answers = asyncio.get_running_loop(), Answers()
    load = _Load(plan, answers, loop.time() + plan.seconds, itertools.cycle([_request(plan, t) for t in plan.texts]))
    await asyncio.gather(*(_client(load) for _ in range(plan.clients)))
    return answers


def _request(plan: LoadPlan, text: str) -> bytes:
    body = json.dumps({"texts": [text]}).encode()
    head = f"POST /predict HTTP/1.1\r\nHost: {plan.host}\r\nContent-Type: application/json\r\n"
    return f"{head}Content-Length: {len(body)}\r\n\r\n".encode() + body


@dataclass(frozen=True)
class _Load:
    """What all clients share: where to send which requests until when, and the answers."""

    plan: LoadPlan
    answers: Answers
    end: float  # the time of the event loop
    requests: Iterator[bytes]


async def _client(load: _Load) -> None:
    """Send requests over one connection after another until the time is over."""
    loop, plan = asyncio.get_running_loop(), load.plan
    while loop.time() < load.end:
        try:
            _, client = await loop.create_connection(lambda: _Client(load, loop), plan.host, plan.port)
        except OSError:
            load.answers.failures += 1
            await asyncio.sleep(0.05)
        else:
            await client.closed


class _Client(asyncio.Protocol):
    """One connection. A protocol instead of streams, so that the clients leave the processors to the services."""

    def __init__(self, load: _Load, loop: asyncio.AbstractEventLoop) -> None:
        self._load, self._loop, self.closed = load, loop, loop.create_future()
        self._received, self._began, self._waits = b"", 0.0, False

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.Transport, transport)  # that of uvloop is of no class of asyncio
        self._send()

    def _send(self) -> None:
        self._waits = self._loop.time() < self._load.end
        if not self._waits:
            self._transport.close()
            return
        self._began = time.perf_counter()
        self._timer = self._loop.call_later(_TIMEOUT, self._transport.abort)
        self._transport.write(next(self._load.requests))

    def data_received(self, data: bytes) -> None:
        self._received += data
        head, end, body = self._received.partition(_END)
        if not end:
            return
        head = head.lower()
        if len(body) < int(head.partition(b"content-length:")[2].partition(b"\r\n")[0]):
            return
        self._timer.cancel()
        self._load.answers.add(int(head[9:12]), time.perf_counter() - self._began)
        self._received, self._waits = b"", False
        if b"connection: close" in head:
            self._transport.close()
        else:
            self._send()

    def connection_lost(self, exc: Exception | None) -> None:
        self._load.answers.failures += self._waits
        if self._waits:
            self._timer.cancel()
        self.closed.set_result(None)


def run_plan(plan: LoadPlan) -> Answers:
    """Send the load from this process."""
    try:
        import uvloop
    except ImportError:
        return asyncio.run(send_load(plan))
    return uvloop.run(send_load(plan))


def answers_from(values: dict[str, Any]) -> Answers:
    """The answers that the process has printed."""
    return Answers({int(status): found for status, found in values["seconds"].items()}, values["failures"])


if __name__ == "__main__":
    print(json.dumps(asdict(run_plan(LoadPlan(**json.load(sys.stdin))))))
