"""The load of `tenor bench serve` against a server that answers as it is told."""

from __future__ import annotations

import asyncio
import json
from collections import Counter
from collections.abc import Callable
from typing import Any

import pytest
import uvloop

from tenor.bench.http_load import Answers, LoadPlan, answers_from, percentile, send_load


@pytest.fixture(scope="module", autouse=True)
def loop_library() -> None:
    """uvloop keeps a pipe for signals from its first loop to the end of the process."""
    uvloop.run(asyncio.sleep(0))


class Server:
    """Answers each request with the next status; None closes the connection instead."""

    def __init__(self, statuses: list[int | None], *, in_pieces: bool = False, closes: bool = False) -> None:
        self.statuses, self.in_pieces, self.closes = statuses, in_pieces, closes
        self.texts: list[str] = []
        self.tasks: list[asyncio.Task[None] | None] = []

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.tasks.append(asyncio.current_task())
        try:
            while True:
                head = (await reader.readuntil(b"\r\n\r\n")).decode()
                length = int(head.partition("Content-Length: ")[2].partition("\r\n")[0])
                self.texts += json.loads(await reader.readexactly(length))["texts"]
                status = self.statuses[(len(self.texts) - 1) % len(self.statuses)]
                if status is None:
                    break
                ending = "Connection: close\r\n" if self.closes else ""
                answer = f"HTTP/1.1 {status} X\r\ncontent-length: 3\r\n{ending}\r\nabc".encode()
                await asyncio.sleep(0.002)
                for piece in [answer[:9], answer[9:-1], answer[-1:]] if self.in_pieces else [answer]:
                    writer.write(piece)
                    await asyncio.sleep(0.001 * self.in_pieces)
                if self.closes:
                    break
        except EOFError:
            pass
        finally:
            writer.close()

    async def load(self, clients: int, seconds: float) -> Answers:
        async with await asyncio.start_server(self.serve, "127.0.0.1", 0) as server:
            port = server.sockets[0].getsockname()[1]
            answers = await send_load(LoadPlan("127.0.0.1", port, clients, seconds, ["a", "b", "c"]))
            await asyncio.wait([task for task in self.tasks if task is not None], timeout=20)
            return answers


@pytest.mark.parametrize("options", [{}, {"in_pieces": True}, {"closes": True}])
@pytest.mark.parametrize("run", [asyncio.run, uvloop.run])
def test_every_request_has_its_answer(run: Callable[..., Any], options: dict[str, bool]) -> None:
    server = Server([200, 503, 200], **options)
    answers = run(server.load(3, 0.3))
    assert answers.others() == 0 and len(server.texts) >= 3
    sent = Counter(server.statuses[place % 3] for place in range(len(server.texts)))
    assert {status: answers.count(status) for status in (200, 503)} == sent
    assert sorted(server.texts[:3]) == ["a", "b", "c"]
    unused = len(server.tasks) - (len(server.texts) if options.get("closes") else 3)
    assert 0 <= unused <= (3 if options.get("closes") else 0)  # connections made when the time was over
    assert all(0.001 < one < 20 for found in answers.seconds.values() for one in found)


def test_a_connection_that_is_closed_instead_of_an_answer_is_a_failure() -> None:
    server = Server([None, 200])
    answers = asyncio.run(server.load(1, 0.1))
    assert answers.failures >= 1 and answers.failures + answers.count(200) == len(server.texts)


def test_a_service_that_is_not_there_is_a_failure() -> None:
    async def main() -> Answers:
        async with await asyncio.start_server(lambda reader, writer: None, "127.0.0.1", 0) as server:
            port = server.sockets[0].getsockname()[1]
        return await send_load(LoadPlan("127.0.0.1", port, 2, 0.1, ["a"]))

    answers = asyncio.run(main())
    assert answers.failures >= 2 and answers.others() == answers.failures


def test_percentiles_are_values_that_were_measured() -> None:
    assert [percentile([4.0, 1.0, 3.0, 2.0], share) for share in (0.01, 0.5, 0.51, 1.0)] == [1.0, 2.0, 3.0, 4.0]
    assert percentile([], 0.99) == 0


def test_answers_travel_as_json() -> None:
    assert answers_from({"seconds": {"200": [0.1]}, "failures": 2}) == Answers({200: [0.1]}, 2)
