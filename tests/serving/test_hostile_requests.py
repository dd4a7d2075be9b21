"""Hostile connections get an answer or are closed; they never hang, and others are served meanwhile."""

from __future__ import annotations

import contextlib
import gzip
import socket
import struct
import time
import zlib
from collections.abc import Iterator
from pathlib import Path

import pytest
from helpers.service import Client, serve_command, served

from tenor.serving.connections import LARGEST_HEAD, MOST_PIPELINED
from tenor.serving.limits import _Gzip

PREDICT = b"POST /predict HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\n"
BODY = b'{"texts": "abc"}'
GET = b"GET /healthz HTTP/1.1\r\nHost: x\r\n\r\n"


@pytest.fixture(scope="module")
def hasty(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Client]:
    """A service with short times, so that tests are short."""
    folder = tmp_path_factory.mktemp("hostile") / "run"
    folder.mkdir()
    limits = {"header_seconds": 0.5, "request_seconds": 0.5, "idle_seconds": 0.5, "max_body_kb": 64}
    with served(folder, **limits) as client:
        client.predict("abc")  # starts the thread that computes, which lasts as long as the service
        yield client


def exchange(client: Client, *parts: bytes, half_close: bool = False) -> bytes:
    """Send bytes and read until the service closes the connection, which it must do within 20 s."""
    with socket.create_connection(("127.0.0.1", client.port), timeout=20) as connection:
        with contextlib.suppress(ConnectionError):
            for part in parts:
                connection.sendall(part)
            if half_close:
                connection.shutdown(socket.SHUT_WR)
        received = b""
        with contextlib.suppress(ConnectionError):
            while data := connection.recv(65536):
                received += data
        return received


def sized(body: bytes, *headers: bytes) -> bytes:
    return PREDICT + b"".join(h + b"\r\n" for h in headers) + b"Content-Length: %d\r\n\r\n" % len(body) + body


def bomb(megabytes: int) -> bytes:
    """A gzip file of zeros, made without holding them in memory."""
    packer, block = zlib.compressobj(9, wbits=31), bytes(1 << 20)
    return b"".join(packer.compress(block) for _ in range(megabytes)) + packer.flush()


@pytest.mark.parametrize(
    ("sent", "status"),
    [
        (b"\x00\xff" * 100, b"400"),
        (b"\r\n" * 1000, b""),
        (b"GET /healthz HTTP/9.9\r\n\r\n", b"400"),
        (b"GET /\xff HTTP/1.1\r\nHost: x\r\n\r\n", b"400"),
        (b"GET /healthz HTTP/1.1\r\nHost: x\r\nA: \x00\r\n\r\n", b"400"),
        (b"CONNECT x:1 HTTP/1.1\r\nHost: x\r\n\r\n", b"4"),
        (b"GET /healthz HTTP/1.1\r\nHost: x\r\nA: " + b"a" * (LARGEST_HEAD + 70_000), b"400"),
        (b"GET /" + b"a" * (LARGEST_HEAD + 70_000), b"400"),
        (b"GET /healthz HTTP/1.1\r\nHost: x\r\nX-Slow: ", b""),
        (PREDICT + b"Content-Length: 100\r\n\r\n{", b"408"),
        (PREDICT + b"Content-Length: 99999999999999999999\r\n\r\n{", b"4"),
        (PREDICT + b"Content-Length: -1\r\n\r\n{", b"400"),
        (PREDICT + b"Content-Length: 3\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n", b"400"),
        (PREDICT + b"Transfer-Encoding: chunked\r\n\r\n" + b"1000\r\n" + b"a" * 4096 + b"\r\n", b"408"),
        (PREDICT + b"Transfer-Encoding: chunked\r\n\r\n" + (b"1000\r\n" + b"a" * 4096 + b"\r\n") * 99, b"413"),
        (PREDICT + b"Transfer-Encoding: chunked\r\n\r\nzzz\r\n", b"4"),
        (PREDICT + b"Connection: upgrade\r\nUpgrade: h2c\r\nContent-Length: 2\r\n\r\n{}", b"4"),
        (sized(b"[" * 60_000), b"422"),
        (sized(b'{"texts": ' + b"[" * 30_000 + b"]" * 30_000 + b"}"), b"422"),
        (sized(b'{"texts": "\xff\xfe"}'), b"422"),
        (sized(b"\x1f\x8b\x08\x00", b"Content-Encoding: gzip"), b"400"),
        (sized(gzip.compress(b"\x00" * 10_000_000), b"Content-Encoding: gzip"), b"413"),
    ],
    ids=lambda value: repr(value[-40:]),
)
def test_an_answer_or_a_close(hasty: Client, sent: bytes, status: bytes) -> None:
    received = exchange(hasty, sent)
    assert received[9:].startswith(status) if status else received == b""
    assert hasty.get("/healthz").status == 200


@pytest.mark.parametrize("megabytes", [50, pytest.param(1000, marks=pytest.mark.soak)])
def test_a_gzip_bomb_is_refused_without_its_memory(hasty: Client, megabytes: int) -> None:
    import psutil

    sent = sized(bomb(megabytes), b"Content-Encoding: gzip")
    before = psutil.Process().memory_info().rss
    assert exchange(hasty, sent)[9:12] == b"413"
    assert psutil.Process().memory_info().rss - before < 20_000_000


def test_decompression_stops_at_the_limit() -> None:
    """Also if the whole bomb arrives at once: the process never holds what it would become."""
    assert len(_Gzip().feed(bomb(50), 1001)) == 1001


def test_nul_characters_and_controls_are_text(hasty: Client) -> None:
    assert hasty.predict(["\x00", "\x1b[2J\r\n", "\ufffe", ""]).status == 200


def test_pipelined_requests_are_answered_in_order(hasty: Client) -> None:
    received = exchange(hasty, GET + sized(BODY) + GET.replace(b"/healthz", b"/nowhere"))
    statuses = [part[:3] for part in received.split(b"HTTP/1.1 ")[1:]]
    assert statuses == [b"200", b"200", b"404"]


def test_endless_pipelining_is_closed(hasty: Client) -> None:
    received = exchange(hasty, sized(BODY) + GET * (10 * MOST_PIPELINED))
    assert received.count(b"HTTP/1.1 ") <= 10 * MOST_PIPELINED
    assert hasty.get("/healthz").status == 200


@pytest.mark.parametrize("sent", [b"", GET[:10], GET, sized(BODY), sized(BODY)[:-3]])
def test_a_half_closed_connection_ends(hasty: Client, sent: bytes) -> None:
    received = exchange(hasty, sent, half_close=True)
    assert received == b"" or received.startswith(b"HTTP/1.1 200")


def test_a_reset_connection_harms_nobody(hasty: Client) -> None:
    for sent in (GET[:5], sized(BODY), sized(BODY)[:-3]):
        with socket.create_connection(("127.0.0.1", hasty.port)) as connection:
            connection.sendall(sent)
            connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    assert hasty.predict("abc").status == 200


def test_an_answer_to_a_large_body_arrives_although_it_is_refused(hasty: Client) -> None:
    """The service reads on for a moment: it would otherwise reset the connection, and the client never see the 413."""
    assert exchange(hasty, sized(b"a" * 200_000))[9:12] == b"413"


def test_slow_clients_are_closed_for_new_ones(tmp_path: Path) -> None:
    with served(tmp_path, max_connections=20, header_seconds=60.0) as client, contextlib.ExitStack() as stack:
        slow = []
        for _ in range(50):
            slow.append(stack.enter_context(socket.create_connection(("127.0.0.1", client.port), timeout=20)))
            slow[-1].sendall(GET[:20])
        assert client.get("/healthz").status == 200
        assert slow[0].recv(10) == b""  # the one that has waited longest
        slow[-1].sendall(GET[20:])  # the last one is still served
        assert slow[-1].recv(12) == b"HTTP/1.1 200"


@pytest.mark.soak
def test_others_are_answered_within_a_second_beside_500_slow_heads(run: Path) -> None:
    with serve_command(run, "--header-seconds", "60") as running, contextlib.ExitStack() as stack:
        slow = [
            stack.enter_context(socket.create_connection(("127.0.0.1", running.client.port), timeout=20))
            for _ in range(500)
        ]
        for sent in GET[:-1]:  # byte by byte; the last one is missing
            for connection in slow:
                connection.sendall(bytes([sent]))
            began = time.monotonic()
            assert running.client.get("/healthz").status == 200
            assert time.monotonic() - began < 1
        slow[0].sendall(GET[-1:])
        assert slow[0].recv(12) == b"HTTP/1.1 200"


@pytest.mark.parametrize("path", [b"/", b"/nowhere"])
def test_a_client_that_does_not_read_is_cut_off(hasty: Client, path: bytes) -> None:
    """It would otherwise keep its connection and the answers in memory for ever."""
    requests = GET.replace(b"/healthz", path) * 20
    with socket.socket() as connection:
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        connection.settimeout(20)
        connection.connect(("127.0.0.1", hasty.port))
        with pytest.raises(ConnectionError):  # a time-out would mean that the service waits
            while True:
                connection.sendall(requests)
                time.sleep(0.02)
    assert hasty.get("/healthz").status == 200


def test_an_idle_connection_is_closed_after_its_answers(hasty: Client) -> None:
    assert exchange(hasty, GET).count(b"HTTP/1.1 200") == 1
