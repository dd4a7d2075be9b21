"""Any bytes that reach a parameter server, from unknown clients or its workers, become a message or an error."""

from __future__ import annotations

import contextlib
import json
import socket
import threading
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from helpers.strategies import POINTS
from hypothesis import example, given, settings
from hypothesis import strategies as st

from tenor.errors import WorkerError
from tenor.groups.compression import make_compression
from tenor.models.embedding import RowEmbedding
from tenor.training.optim.optimizers import SGD, Optimizer
from tenor.training.parameter_server.arrivals import Arrival
from tenor.training.parameter_server.cargo import Cargo
from tenor.training.parameter_server.channels import Event
from tenor.training.parameter_server.messages import HELLO, MARK, PREFIX, PUSH, ROWS, WORK, Message, decode
from tenor.training.parameter_server.sockets import SocketChannel, SocketLine
from tenor.training.strategies import asynchronous
from tenor.world import World


def framed(head: bytes, body: bytes = b"") -> bytes:
    return PREFIX.pack(MARK, len(head), len(body)) + head + body


def with_shape(shape: object, body: bytes = b"") -> bytes:
    return framed(json.dumps({"kind": "push", "values": {}, "arrays": [["<f4", shape]]}).encode(), body)


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text() | st.sampled_from(["push", "<f4", "\ud800"]),
    lambda inner: st.lists(inner) | st.dictionaries(st.sampled_from(["kind", "values", "arrays", "loss"]), inner),
    max_leaves=12,
)
HEADS = st.fixed_dictionaries(
    {
        "kind": st.sampled_from(["push", "run", "\ud800"]) | JSON,
        "values": st.dictionaries(st.text(), JSON) | JSON,
        "arrays": st.lists(st.tuples(st.sampled_from(["<f4", "<i8", "|O", "<c16"]) | JSON, st.lists(JSON) | JSON)),
    }
)


@settings(max_examples=100, deadline=None)
@given(st.binary() | HEADS.map(lambda head: framed(json.dumps(head).encode())), st.binary(max_size=40))
@example(b"", b"")
@example(b"tnr1", b"")
@example(PREFIX.pack(b"none", 2, 0), b"{}")
@example(PREFIX.pack(MARK, 1 << 19, 0), b"{}")
@example(framed(b"[" * 4000), b"")
@example(framed(b'{"kind":"push","values":' + b'{"a":' * 4000), b"")
@example(framed(b'{"kind":"push","values":{},"arrays":' + b"1" * 5000 + b"}"), b"")
@example(with_shape([10**30]), b"")
@example(with_shape([0, 10**30]), b"")
@example(with_shape([2**31, 2**31, 2**31]), b"")
@example(with_shape([0, 2**31 - 1, 2**31 - 1, 2**31 - 1]), b"")
@example(with_shape([1] * 70, bytes(4)), b"")
@example(with_shape([True], bytes(4)), b"")
@example(with_shape({}, bytes(4)), b"")
@example(with_shape([-1], bytes(4)), b"")
@example(framed(b'{"kind":"\\ud800","values":{},"arrays":[]}'), b"")
def test_any_bytes_become_a_message_or_an_error(frame: bytes, more: bytes) -> None:
    try:
        message = decode(frame + more)
    except WorkerError as error:
        assert "cannot be read" in error.what
    else:
        assert isinstance(message.kind, str) and isinstance(message.values, dict)
        for array in message.arrays:
            assert all(type(extent) is int for extent in array.shape)


@pytest.mark.parametrize("shape", [[10**30], [0, 10**30], [True], [-1, -1], {}, "1"])
def test_invalid_shapes_are_refused(shape: object) -> None:
    assert decode(with_shape([1], bytes(4))).arrays[0].shape == (1,)
    with pytest.raises(WorkerError, match="cannot be read"):
        decode(with_shape(shape, bytes(4)))


@pytest.fixture
def meeting(tmp_path: Path) -> Path:
    return tmp_path / "server.json"


@pytest.fixture
def channel(meeting: Path) -> Iterator[SocketChannel]:
    opened = SocketChannel(meeting, num_workers=2, limit=1 << 20)
    yield opened
    opened.close(patience=0.0)


def polled(channel: SocketChannel, count: int, seconds: float = 5.0) -> list[Event]:
    found: list[Event] = []
    until = time.monotonic() + seconds
    while len(found) < count and time.monotonic() < until:
        found += channel.poll(0.02)
    return found


HOSTILE = {
    "a huge shape": with_shape([10**30]),
    "deep nesting": framed(b"[" * 4000),
    "a surrogate": b"".join(Message(HELLO, {"worker": 0, "token": "\ud800"}).encode()),  # type: ignore[arg-type]
    "a frame of ours": b"".join(Message(PUSH, {"sequence": 1}).encode()),  # type: ignore[arg-type]
    "noise": bytes(range(256)),
}


@pytest.mark.parametrize("name", HOSTILE)
def test_an_unknown_client_is_dropped_before_anything_is_parsed(name: str, channel: SocketChannel) -> None:
    with socket.create_connection(channel.listener.getsockname(), 5) as stranger:
        stranger.sendall(HOSTILE[name])
        assert polled(channel, 1, 0.3) == []
        with contextlib.suppress(ConnectionResetError):
            assert stranger.recv(1) == b""
    assert channel.unknown == []


def test_many_silent_clients_delay_no_worker(channel: SocketChannel, meeting: Path) -> None:
    """Two hundred connections, half of which send one byte: a worker still connects, few others stay open."""
    strangers = []
    try:
        for number in range(200):
            strangers.append(socket.create_connection(channel.listener.getsockname(), 5))
            if number % 2:
                strangers[-1].sendall(MARK[:1])
            channel.poll(0)
        line = SocketLine(meeting, 1, 1 << 20, 5)
        (hello,) = polled(channel, 1)
        assert hello.message is not None and (hello.worker, hello.message.kind) == (1, HELLO)
        assert len(channel.unknown) <= 64
        channel.send(1, Message(WORK, {"a": 1}))
        assert line.receive().values == {"a": 1}
        line.close()
    finally:
        for stranger in strangers:
            stranger.close()


def test_a_silent_client_is_dropped_in_time(channel: SocketChannel, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tenor.training.parameter_server.sockets.GREETING_SECONDS", 0.1)
    with socket.create_connection(channel.listener.getsockname(), 5) as stranger:
        polled(channel, 1, 0.4)
        assert stranger.recv(1) == b""


def test_a_worker_connects_again_if_its_connection_was_closed(channel: SocketChannel, meeting: Path) -> None:
    line = SocketLine(meeting, 0, 1 << 20, 5)
    lost = line.socket
    connection, _ = channel.listener.accept()  # closed before the server reads from it
    connection.close()
    heard: list[Message] = []
    thread = threading.Thread(target=lambda: heard.append(line.receive()))
    thread.start()
    assert [event.worker for event in polled(channel, 1)] == [0]
    channel.send(0, Message(WORK))
    thread.join(5)
    assert heard[0].kind == WORK and line.socket is not lost
    line.close()


@pytest.mark.parametrize("bad", [framed(b"[" * 4000), with_shape([10**30]), b"x" * 40])
def test_only_the_worker_that_sends_an_invalid_message_is_dropped(
    bad: bytes, channel: SocketChannel, meeting: Path
) -> None:
    lines = [SocketLine(meeting, number, 1 << 20, 5) for number in range(2)]
    assert sorted(event.worker for event in polled(channel, 2)) == [0, 1]
    lines[0].socket.sendall(bad)
    (gone,) = polled(channel, 1)
    assert (gone.worker, gone.message) == (0, None)
    lines[1].send(Message(ROWS, {}, (np.arange(3),)))
    (event,) = polled(channel, 1)
    assert event.worker == 1 and event.message is not None and event.message.kind == ROWS
    for line in lines:
        line.close()


def test_an_unknown_worker_number_is_refused(channel: SocketChannel, meeting: Path) -> None:
    line = SocketLine(meeting, 2, 1 << 20, 5)
    assert polled(channel, 1, 0.2) == []
    assert channel.peers == {}
    line.close()


class Recorded:
    """A channel that records messages and sends nothing."""

    def __init__(self) -> None:
        self.sent: list[tuple[int, Message]] = []
        self.dropped: list[int] = []

    def send(self, worker: int, message: Message) -> int:
        self.sent.append((worker, message))
        return 0

    def drop(self, worker: int, reason: str) -> None:
        self.dropped.append(worker)


ROWS_TOUCHED = np.array([1, 3], np.int64)


def make_server(compress: str = "none", **changes: Any) -> tuple[asynchronous.Asynchronous, Recorded]:
    """A server of two workers for a table of 5 × 2 and a layer of 2 × 1, without a loop."""
    torch.manual_seed(0)
    model = torch.nn.Sequential()
    model.table = RowEmbedding(5, 2)
    model.layer = torch.nn.Linear(2, 1)
    made = replace(POINTS, strategy="async", compress=compress, **changes)
    compression = make_compression(compress, made.top_k, made.batch_size)
    server = asynchronous.Asynchronous(made, World(0, 3, 0, 3), compression)
    server.optimizer = Optimizer(model, SGD())
    server.cargo = Cargo(model, server.optimizer, compression)
    server.channel = channel = Recorded()  # type: ignore[assignment]
    server.leases.begin(0, 4)
    for worker in range(2):
        server._take(Event(worker, Message(HELLO)))
    server._hand_out()
    return server, channel


COUNTS = {"loss": 0.5, "weight": 2.0, "samples": 2, "tokens": 6, "padded": 8, "seconds": 0.1, "saved": 0, "signal": 0}
GOOD = {"sequence": 1, **COUNTS}


def good_arrays() -> list[Any]:
    return [np.ones(3, np.float32), np.ones(4, np.float32)]


def test_a_valid_push_is_accepted() -> None:
    server, channel = make_server()
    for worker in range(2):
        server._take(Event(worker, Message(ROWS, {}, (ROWS_TOUCHED,))))
    assert server._take(Event(0, Message(PUSH, GOOD, tuple(good_arrays())))) is None
    arrival = server._take(Event(1, Message(PUSH, {**GOOD, "loss": float("nan")}, tuple(good_arrays()))))
    assert isinstance(arrival, Arrival) and len(arrival) == 4 and channel.dropped == []


BAD_VALUES = [
    *({"sequence": value} for value in (None, "1", 1.5, True, -1, float("nan"))),
    *({"loss": value} for value in (None, "1", [], True)),
    *({"weight": value} for value in (-1.0, float("nan"), float("inf"), None, 10**400)),
    *({name: value} for name in ("samples", "tokens", "padded") for value in (-1, 0.5, None, 1 << 70)),
    *({name: None} for name in ("saved", "signal")),
    {"signal": 10**30},
    {"signal": -1},
]


@pytest.mark.parametrize("change", BAD_VALUES, ids=str)
def test_a_push_with_invalid_values_drops_only_its_worker(change: dict[str, Any]) -> None:
    server, channel = make_server()
    server._take(Event(0, Message(ROWS, {}, (ROWS_TOUCHED,))))
    assert server._take(Event(0, Message(PUSH, {**GOOD, **change}, tuple(good_arrays())))) is None
    assert channel.dropped == [0]
    assert server.leases.requeued == {"lost": 1} and 0 not in server.leases.grants


BAD_ARRAYS: dict[str, list[Any]] = {
    "none": [],
    "one too few": good_arrays()[:1],
    "one too many": [*good_arrays(), np.ones(1, np.float32)],
    "too short": [np.ones(2, np.float32), np.ones(4, np.float32)],
    "another shape": [np.ones((3, 1), np.float32), np.ones(4, np.float32)],
    "another type": [np.ones(3, np.int64), np.ones(4, np.float32)],
}


@pytest.mark.parametrize("name", BAD_ARRAYS)
def test_a_push_with_other_shapes_drops_only_its_worker(name: str) -> None:
    server, channel = make_server()
    server._take(Event(0, Message(ROWS, {}, (ROWS_TOUCHED,))))
    assert server._take(Event(0, Message(PUSH, GOOD, tuple(BAD_ARRAYS[name])))) is None
    assert channel.dropped == [0]


@pytest.mark.parametrize(
    "places", [[0, 3], [-1, 0], [0.0, 1.0], [0], [[0, 1]]], ids=["beyond", "negative", "floats", "few", "nested"]
)
def test_positions_of_top_k_must_be_valid(places: list[Any]) -> None:
    server, channel = make_server("top-k", top_k=0.5)
    server._take(Event(0, Message(ROWS, {}, (ROWS_TOUCHED,))))
    kind = np.float32 if isinstance(places[0], float) else np.int32
    arrays = (np.array(places, kind), np.ones(2, np.float32), np.array([0, 1], np.int32), np.ones(2, np.float32))
    server._take(Event(0, Message(PUSH, GOOD, arrays)))
    assert channel.dropped == [0]


@pytest.mark.parametrize(
    "arrays",
    [(), (np.array([5]),), (np.array([-1]),), (np.array([1, 1]),), (np.array([0.0]),), (np.array([[0]]),)],
    ids=["none", "beyond", "negative", "twice", "floats", "nested"],
)
def test_a_request_for_missing_rows_drops_only_its_worker(arrays: tuple[Any, ...]) -> None:
    server, channel = make_server()
    server._take(Event(1, Message(ROWS, {}, arrays)))
    assert channel.dropped == [1]
    assert [worker for worker, message in channel.sent if message.kind != WORK] == []


def test_parts_of_a_batch_must_have_the_same_rows() -> None:
    server, channel = make_server()
    server._take(Event(0, Message(ROWS, {}, (ROWS_TOUCHED,))))
    server._take(Event(1, Message(ROWS, {}, (np.array([0, 4]),))))
    server._take(Event(0, Message(PUSH, GOOD, tuple(good_arrays()))))
    assert server._take(Event(1, Message(PUSH, GOOD, tuple(good_arrays())))) is None
    assert channel.dropped == [1]


def test_the_text_of_a_failure_can_be_printed() -> None:
    server, _ = make_server()
    with pytest.raises(WorkerError) as caught:
        server._take(Event(0, Message("failed", {"what": "bad \ud800", "remedy": 3})))
    str(caught.value).encode()
