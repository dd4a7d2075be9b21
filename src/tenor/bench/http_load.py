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
from typing import Any

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
    answers, requests = Answers(), itertools.cycle([_request(plan, text) for text in plan.texts])
    end = time.perf_counter() + plan.seconds
    await asyncio.gather(*(_client(plan, requests, end, answers) for _ in range(plan.clients)))
    return answers


def _request(plan: LoadPlan, text: str) -> bytes:
    body = json.dumps({"texts": [text]}).encode()
    head = f"POST /predict HTTP/1.1\r\nHost: {plan.host}\r\nContent-Type: application/json\r\n"
    return f"{head}Content-Length: {len(body)}\r\n\r\n".encode() + body


async def _client(plan: LoadPlan, requests: Iterator[bytes], end: float, answers: Answers) -> None:
    while time.perf_counter() < end:
        try:
            reader, writer = await asyncio.open_connection(plan.host, plan.port)
        except OSError:
            answers.failures += 1
            await asyncio.sleep(0.05)
            continue
        try:
            while time.perf_counter() < end:
                began = time.perf_counter()
                writer.write(next(requests))
                status, keeps = await asyncio.wait_for(_answer(reader), _TIMEOUT)
                answers.add(status, time.perf_counter() - began)
                if not keeps:
                    break
        except (OSError, EOFError, TimeoutError):
            answers.failures += 1
        finally:
            writer.close()


async def _answer(reader: asyncio.StreamReader) -> tuple[int, bool]:
    """The status of the next answer, and whether the connection stays open."""
    head = (await reader.readuntil(_END)).lower()
    length = int(head.partition(b"content-length:")[2].partition(b"\r\n")[0])
    await reader.readexactly(length)
    return int(head[9:12]), b"connection: close" not in head


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
