"""The parameter server compared with one process, and with a plain implementation of stale gradients."""

from __future__ import annotations

import json
import socket
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import torch
from helpers.strategies import POINTS
from helpers.training import events, load_part, losses, run, weights
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import array_shapes, arrays

from tenor.errors import UsageError, WorkerError
from tenor.groups.compression import Compression, make_compression
from tenor.training.assemble import train_as
from tenor.training.balancing.slowdown import Pace, Slowdown
from tenor.training.job import TrainingJob
from tenor.training.optim.optimizers import SGD, Optimizer
from tenor.training.parameter_server.arrivals import make_arrival
from tenor.training.parameter_server.cargo import Cargo
from tenor.training.parameter_server.channels import Event
from tenor.training.parameter_server.client import Client
from tenor.training.parameter_server.messages import END, HELLO, MARK, PREFIX, ROWS, WORK, Message, decode, frame_size
from tenor.training.parameter_server.sockets import GREETING, SocketChannel, SocketLine
from tenor.training.strategies import asynchronous, make_strategy
from tenor.training.tasks.points import Points
from tenor.world import World

STEPS = 30


def test_without_staleness_it_equals_one_process(data: Path, tmp_path: Path) -> None:
    """Three workers on reviews: every step agrees to rounding, and only touched rows of the embedding travel."""
    changes = {"max_steps": STEPS, "precision": "fp64", "keep": "last"}
    run(data, tmp_path / "alone", **changes)
    result = run(data, tmp_path / "run", strategy="async", staleness="0", workers="3", **changes)
    assert (result["workers"], result["staleness_max"], result["replaced"]) == (3, 0.0, 0)
    np.testing.assert_allclose(losses(tmp_path / "run"), losses(tmp_path / "alone"), rtol=1e-9)
    expected = weights(tmp_path / "alone")
    for name, found in weights(tmp_path / "run").items():
        assert np.abs(found - expected[name]).max() < 1e-8 * np.abs(expected[name]).max(), name
    seen = events(tmp_path / "run")
    assert all(sorted(part for *_, part in event["leases"]) == [0, 1, 2] for event in seen)
    table = next(weight for name, weight in expected.items() if name == "deep.embedding.weight")
    ngrams = expected["wide.ngrams.weight"]
    assert max(event["bytes_sent"] for event in seen) < 3 * 2 * (
        table.nbytes + ngrams.nbytes
    )  # three pulls and three pushes


class Scripted:
    """Three workers in the server's own process that push in turn.

    The last one completes a batch and continues with the new weights. The other two have begun the next batch with the
    old weights, so their gradients are one update late.
    """

    compress = "none"

    def __init__(self, world: World, backend: str, limit: int) -> None:
        self.task = Points(SETTINGS)
        model = self.task.make_model()
        optimizer = Optimizer(model, SGD())
        cargo = Cargo(model, optimizer, make_compression(self.compress, 0.5, SETTINGS.batch_size))
        self.workers = [Client(self.task, model, optimizer, cargo, Pace(Slowdown(), 0)) for _ in range(3)]
        self.inbox: dict[int, Message] = {}
        self.greetings = [0, 1, 2]
        self.turn = 0

    def poll(self, seconds: float) -> list[Event]:
        if self.greetings:
            return [Event(self.greetings.pop(0), Message(HELLO))]
        number, self.turn = self.turn, (self.turn + 1) % 3
        answer = self.workers[number]._work(None, self.inbox.pop(number), lambda: 0)  # type: ignore[arg-type]
        return [Event(number, answer)]

    def send(self, worker: int, message: Message) -> int:
        if message.kind == WORK:
            self.inbox[worker] = message
        return 0

    def close(self) -> None:
        pass


SETTINGS = replace(
    POINTS,
    strategy="async",
    precision="fp64",
    optimizer="sgd",
    momentum=0.0,
    clip=0.0,
    decay="none",
    warmup_epochs=0.0,
    lr=0.5,
    max_steps=12,
)


def test_a_worker_that_waits_for_rows_accepts_the_end() -> None:
    task = Points(SETTINGS)
    model = task.make_model()
    optimizer = Optimizer(model, SGD())
    cargo = Cargo(model, optimizer, make_compression("none", 0.5, SETTINGS.batch_size))
    cargo.tables = {"words.weight": None}  # type: ignore[dict-item]
    load = task.load
    task.load = lambda *which: replace(load(*which), rows={"words": torch.tensor([0, 1])})  # type: ignore[method-assign]
    values = {"sequence": 0, "step": 1, "epoch": 0, "batch": 0, "part": 0, "parts": 1}
    values |= {"refused": [], "undecided": []}
    messages = [Message(WORK, values, (cargo.weights().numpy(),)), Message(END, {"result": {"steps": 7}})]
    sent: list[Message] = []
    line = SimpleNamespace(receive=lambda: messages.pop(0), send=sent.append, close=lambda: None)
    worker = Client(task, model, optimizer, cargo, Pace(Slowdown(), 0))
    assert worker.run(line, lambda: 0) == {"steps": 7}  # type: ignore[arg-type]
    assert [message.kind for message in sent] == [ROWS]


def train_scripted(out: Path, monkeypatch: pytest.MonkeyPatch, **changes: Any) -> dict[str, Any]:
    monkeypatch.setattr(asynchronous, "open_channel", Scripted)
    monkeypatch.setattr(asynchronous, "time", SimpleNamespace(monotonic=lambda: 0.0))  # nothing is overdue
    monkeypatch.setattr(Scripted, "compress", changes.get("compress", "none"))
    world = World(0, 4, 0, 4, rendezvous="file:///nowhere")
    job = TrainingJob("points", str(out), replace(SETTINGS, **changes), False)
    return train_as(world, job, lambda event: None, lambda: 0)


@pytest.fixture
def double() -> Iterator[None]:
    torch.set_default_dtype(torch.float64)
    yield
    torch.set_default_dtype(torch.float32)


@pytest.mark.usefixtures("double")
@pytest.mark.parametrize("changes", [{}, {"delay_compensation": 2.0}, {"staleness": "0"}])
def test_late_gradients_are_applied_as_in_a_plain_implementation(
    changes: dict[str, Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    result = train_scripted(tmp_path, monkeypatch, **changes)
    expected = plain_training(**changes)
    behind = [0] + 11 * [0 if changes.get("staleness") == "0" else 1]
    assert [event["staleness"] for event in events(tmp_path)] == behind
    assert (result["staleness_max"], result["staleness_mean"]) == (max(behind), sum(behind) / 12)
    for name, weight in expected.items():
        np.testing.assert_allclose(weights(tmp_path)[name], weight.numpy(), rtol=1e-9, atol=1e-12)


@pytest.mark.usefixtures("double")
@pytest.mark.parametrize(
    ("compress", "bytes_a_number", "near"), [("fp16", 2, 1e-3), ("bf16", 2, 1e-2), ("top-k", 6, 0.5)]
)
def test_compressed_gradients_lead_to_about_the_same_weights(
    compress: str, bytes_a_number: int, near: float, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With top-k, half of the numbers travel, in 8 bytes each and 4 for the position; the rest comes later."""
    share = {"top_k": 0.5} if compress == "top-k" else {}
    result = train_scripted(tmp_path, monkeypatch, compress=compress, **share)
    expected = plain_training()
    numbers = sum(weight.numel() for weight in expected.values())
    assert result["bytes_saved"] == 12 * 3 * numbers * (8 - bytes_a_number)
    found = weights(tmp_path)
    distance = max(np.abs(found[name] - weight.numpy()).max() for name, weight in expected.items())
    assert 0 < distance < near


def plain_training(delay_compensation: float = 0.0, staleness: str = "4") -> dict[str, torch.Tensor]:
    task = Points(SETTINGS)
    model = task.make_model()
    history: list[list[torch.Tensor]] = []
    for step in range(12):
        history.append([parameter.detach().clone() for parameter in model.parameters()])
        now = history[-1]
        total = [torch.zeros_like(weight) for weight in now]
        for part in range(3):
            old = now if part == 2 or step == 0 or staleness == "0" else history[-2]
            put(model, old)
            batch = load_part(task, 0, step, part, np.ones(3))
            model.zero_grad()
            torch.nn.functional.cross_entropy(model(batch), batch.labels, reduction="sum").backward()
            for so_far, parameter, w, v in zip(total, model.parameters(), now, old, strict=True):
                assert parameter.grad is not None
                so_far.add_(parameter.grad + delay_compensation * parameter.grad.abs() * (w - v))
        put(model, [weight - 0.5 * gradient / 256 for weight, gradient in zip(now, total, strict=True)])
    return {name: parameter.detach() for name, parameter in model.named_parameters()}


def test_the_rate_of_a_late_gradient_is_divided_by_its_staleness() -> None:
    rates: list[float] = []
    server = asynchronous.Asynchronous(
        replace(SETTINGS, stale_rate=True), World(0, 3, 0, 3), make_compression("none", 0.1, 1)
    )
    server.optimizer = SimpleNamespace(step=rates.append)  # type: ignore[assignment]
    for staleness in (0, 1, 3):
        server.arrival = make_arrival([], staleness)
        server.apply(0.6)
    assert rates == [0.6, 0.6, pytest.approx(0.2)]


@torch.no_grad()
def put(model: torch.nn.Module, values: list[torch.Tensor]) -> None:
    for parameter, value in zip(model.parameters(), values, strict=True):
        parameter.copy_(value)


@settings(max_examples=50, deadline=None)
@given(st.lists(arrays(st.sampled_from(["<f4", "<f8", "<i8"]), array_shapes(min_dims=1, min_side=0)), max_size=3))
def test_a_message_survives_encoding_and_decoding(given_arrays: list[Any]) -> None:
    message = Message(WORK, {"loss": 0.25, "name": "ä"}, tuple(given_arrays))
    frame = b"".join(message.encode())
    assert frame_size(frame, len(frame)) == len(frame)
    found = decode(frame)
    assert (found.kind, found.values) == (message.kind, message.values)
    for one, other in zip(found.arrays, given_arrays, strict=True):
        assert one.dtype == other.dtype
        np.testing.assert_array_equal(one, other)


def frame(head: object, body: bytes = b"") -> bytes:
    text = json.dumps(head).encode()
    return PREFIX.pack(b"tnr1", len(text), len(body)) + text + body


@pytest.mark.parametrize(
    "bad",
    [
        frame({"kind": "work", "values": {}, "arrays": [["|O", [1]]]}, bytes(8)),
        frame({"kind": "work", "values": {}, "arrays": [["<f4", [3]]]}, bytes(8)),
        frame({"kind": "work", "values": {}, "arrays": [["<f4", [-1]]]}, bytes(8)),
        frame({"kind": "work", "values": {}, "arrays": []}, bytes(8)),
        frame({"kind": "run", "values": {}, "arrays": []}),
        frame([1, 2]),
    ],
)
def test_invalid_frames_are_refused(bad: bytes) -> None:
    with pytest.raises(WorkerError, match="cannot be read"):
        decode(bad)


def test_a_frame_beyond_the_limit_is_refused_before_it_is_read() -> None:
    with pytest.raises(WorkerError, match="too large"):
        frame_size(PREFIX.pack(b"tnr1", 10, 1 << 40), 1 << 20)


def until_events(channel: SocketChannel, count: int) -> list[Event]:
    found: list[Event] = []
    until = time.monotonic() + 10
    while len(found) < count and time.monotonic() < until:
        found += channel.poll(0.05)
    return found


def test_unknown_clients_are_dropped_and_a_stopped_worker_delays_no_other(tmp_path: Path) -> None:
    channel = SocketChannel(tmp_path / "server.json", 2, 1 << 26)
    try:
        assert (tmp_path / "server.json").stat().st_mode & 0o077 == 0
        stranger = socket.create_connection(channel.listener.getsockname(), 5)
        stranger.sendall(GREETING.pack(MARK, 0, b"guess".ljust(32)))
        still, quick = (SocketLine(tmp_path / "server.json", number, 1 << 26, 10) for number in range(2))
        assert sorted(event.worker for event in until_events(channel, 2)) == [0, 1]
        assert stranger.recv(1) == b""
        stranger.close()
        big = Message(WORK, {}, (np.zeros(1 << 23, np.float32),))  # more than the buffers of the system hold
        channel.send(0, big)
        channel.send(1, Message(END))
        assert quick.receive().kind == END
        quick.close()
        (gone,) = until_events(channel, 1)
        assert (gone.worker, gone.message) == (1, None)
        still.close()
    finally:
        channel.close()


def packed_and_unpacked(compression: Compression, gradient: torch.Tensor, rows: torch.Tensor | None) -> torch.Tensor:
    found = torch.empty_like(gradient)
    parts = compression.pack("w", gradient.clone().view(-1), rows)
    compression.unpack([torch.from_numpy(part.numpy()) for part in parts], found.view(-1))
    return found


@pytest.mark.parametrize(("name", "exact"), [("none", 0.0), ("fp16", 1e-3), ("bf16", 1e-2)])
def test_unpacking_reverses_packing(name: str, exact: float) -> None:
    gradient = torch.randn(7, 4, generator=torch.Generator().manual_seed(1))
    found = packed_and_unpacked(make_compression(name, 0.1, 64), gradient, None)
    torch.testing.assert_close(found, gradient, rtol=exact, atol=exact)


@pytest.mark.parametrize("rows", [None, torch.tensor([1, 4, 6])])
def test_top_k_sends_the_rest_later_and_undoes_refused_pushes(rows: torch.Tensor | None) -> None:
    compression = make_compression("top-k", 0.25, 64)
    compression.remember("w", torch.empty(7, 4))
    generator, total, applied = torch.Generator().manual_seed(1), torch.zeros(7, 4), torch.zeros(7, 4)
    where = torch.arange(7) if rows is None else rows
    for step in range(6):
        gradient = torch.randn(len(where), 4, generator=generator)
        found = packed_and_unpacked(compression, gradient, rows)
        assert int((found != 0).sum()) == len(where)  # a quarter of 4 numbers per row
        compression.settle([0] if step % 3 == 2 else [], [])
        if step % 3 == 2:
            continue
        total[where] += gradient
        applied[where] += found
    torch.testing.assert_close(applied + compression.memory["w"], total)


def test_options_that_async_cannot_honour_are_refused() -> None:
    for changes in ({"shares": "1:2"}, {"balance": "epoch"}):
        with pytest.raises(UsageError, match="strategy async"):
            make_strategy(replace(POINTS, strategy="async", **changes), World())
    with pytest.raises(UsageError, match="staleness"):
        replace(POINTS, staleness="-1")
