"""Late pushes with top-k: applied and held-back numbers add up to the gradients of applied leases, to the bit."""

from __future__ import annotations

from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import torch
from helpers.strategies import POINTS

from tenor.groups.compression import TopK, make_compression
from tenor.models.embedding import RowEmbedding
from tenor.training.optim.optimizers import SGD, Optimizer
from tenor.training.parameter_server.arrivals import Arrival
from tenor.training.parameter_server.cargo import DENSE, Cargo
from tenor.training.parameter_server.channels import Event
from tenor.training.parameter_server.messages import HELLO, PUSH, ROWS, WORK, Message
from tenor.training.strategies import asynchronous
from tenor.world import World

COUNTS = {"loss": 0.5, "weight": 2.0, "samples": 2, "tokens": 6, "padded": 8, "saved": 0, "signal": 0}
NUM_ROWS, WIDTH = 6, 2


def make_model() -> torch.nn.Module:
    model = torch.nn.Module()
    model.table, model.layer = RowEmbedding(NUM_ROWS, WIDTH), torch.nn.Linear(WIDTH, 3)
    for parameter in model.parameters():
        torch.nn.init.constant_(parameter, 1.0)
    return model


class Simulation:
    """A real server and real compression. The gradients are whole numbers, so that every sum is exact."""

    def __init__(self, size: int, rounds: int, seed: int) -> None:
        settings = replace(POINTS, strategy="async", compress="top-k", top_k=0.3, staleness=str(rounds))
        self.size, self.rng = size, np.random.default_rng(seed)
        self.server = asynchronous.Asynchronous(settings, World(0, size + 1, 0, size + 1), TopK(0.3))
        model = make_model()
        self.server.optimizer = Optimizer(model, SGD())
        self.server.cargo = Cargo(model, self.server.optimizer, self.server.compression)
        self.server.channel = self  # type: ignore[assignment]
        self.workers = [TopK(0.3) for _ in range(size)]
        for worker in self.workers:
            Cargo(make_model(), Optimizer(make_model(), SGD()), worker)
        self.inbox: dict[int, Message] = {}
        self.given: dict[tuple[int, int], list[torch.Tensor]] = {}  # gradients by (worker, sequence), as whole tensors
        self.applied = [torch.zeros(9), torch.zeros(NUM_ROWS, WIDTH)]
        self.counted = [torch.zeros(9), torch.zeros(NUM_ROWS, WIDTH)]
        self.num_refused, self.most_open = 0, 0

    def send(self, worker: int, message: Message) -> int:
        if message.kind == WORK:
            self.inbox[worker] = message
        return 0

    def drop(self, worker: int, reason: str) -> None:
        raise AssertionError(reason)

    def push(self, number: int) -> None:
        values, compression = self.inbox.pop(number).values, self.workers[number]
        self.num_refused += len(values["refused"])
        compression.settle(values["refused"], values["undecided"])
        self.most_open = max(self.most_open, len(compression.changes))
        rows = torch.from_numpy(np.random.default_rng(values["batch"]).permutation(NUM_ROWS)[:3]).sort().values
        dense = torch.from_numpy(self.rng.integers(-99, 99, 9)).float()
        table = torch.from_numpy(self.rng.integers(-99, 99, (3, WIDTH))).float()
        whole = torch.zeros(NUM_ROWS, WIDTH).index_copy_(0, rows, table)
        self.given[number, values["sequence"]] = [dense.clone(), whole]
        parts = compression.pack(DENSE, dense, push=values["sequence"])
        parts += compression.pack("table.weight", table.flatten(), rows, push=values["sequence"])
        self.server._take(Event(number, Message(ROWS, {}, (rows.numpy(),))))
        arrays = tuple(part.numpy() for part in parts)
        pushed = Message(PUSH, {"sequence": values["sequence"], **COUNTS}, arrays)
        if (arrival := self.server._take(Event(number, pushed))) is not None:
            self.apply(arrival)

    def apply(self, arrival: Arrival) -> None:
        for one in arrival.pushes:
            dense, table = self.server.cargo.unpack_gradients(one.arrays, one.pull.rows)
            assert one.pull.rows is not None
            self.applied[0] += dense
            self.applied[1].index_add_(0, one.pull.rows[0], table)
            for total, gradient in zip(self.counted, self.given[one.grant.worker, one.grant.sequence], strict=True):
                total.add_(gradient)

    def run(self, num_batches: int, slow: int) -> None:
        """One worker pushes rarely, so that parts of its batches that others pushed become late."""
        for worker in range(self.size):
            self.server._take(Event(worker, Message(HELLO)))
        self.server.leases.begin(0, num_batches)
        for turn in range(100 * num_batches):
            self.server._hand_out()
            ready = [worker for worker in self.inbox if worker != slow or turn % 17 == 0]
            if ready:
                self.push(int(self.rng.choice(ready)))
            if self.server.leases.is_over:
                break
        assert self.server.leases.is_over
        for number, compression in enumerate(self.workers):  # what the server has sent them, or will send next
            told = self.inbox[number].values["refused"] if number in self.inbox else []
            compression.settle([*told, *self.server.refused.get(number, [])], [])


@pytest.mark.parametrize("seed", range(4))
def test_no_numbers_of_late_pushes_are_lost(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(asynchronous, "time", SimpleNamespace(monotonic=lambda: 0.0))  # nothing is overdue
    simulation = Simulation(3, 1, seed)
    simulation.run(40, slow=2)
    late = simulation.server.leases.requeued["late"]
    assert simulation.num_refused > 5 and late > 5
    for number, name in enumerate((DENSE, "table.weight")):
        held = sum(compression.memory[name] for compression in simulation.workers)
        assert torch.equal(simulation.applied[number] + held, simulation.counted[number])
    assert simulation.most_open <= 9  # batches under way, one per worker at most, times their parts


def test_a_worker_learns_of_every_refused_push(monkeypatch: pytest.MonkeyPatch) -> None:
    """Two of three parts are pushed and kept; later batches make them too late, and the third is refused on arrival."""
    monkeypatch.setattr(asynchronous, "time", SimpleNamespace(monotonic=lambda: 0.0))
    simulation = Simulation(3, 1, 0)
    heard: dict[int, list[int]] = {0: [], 1: [], 2: []}

    def listen(worker: int, message: Message) -> int:
        if message.kind == WORK:
            heard[worker] += message.values["refused"]
        return Simulation.send(simulation, worker, message)

    simulation.server.channel = SimpleNamespace(send=listen)  # type: ignore[assignment]
    for worker in range(3):
        simulation.server._take(Event(worker, Message(HELLO)))
    simulation.server.leases.begin(0, 9)
    simulation.server._hand_out()
    assert simulation.inbox[0].values["undecided"] == []
    while simulation.server.leases.version < 2:
        simulation.push(0)
        simulation.server._hand_out()
        if 1 in simulation.inbox:
            simulation.push(1)
        simulation.server._hand_out()
    for worker in range(3):
        simulation.push(worker)
        simulation.server._hand_out()
    assert (heard[0][0], heard[1][0], heard[2]) == (1, 1, [1])  # the first push of each


@pytest.mark.parametrize("seed", range(3))
def test_delay_compensation_also_covers_tables(seed: int) -> None:
    """g + λ|g|(w − w'), in NumPy, for the dense weights and for the rows of a table."""
    settings = replace(POINTS, strategy="async", delay_compensation=0.7)
    server = asynchronous.Asynchronous(settings, World(0, 2, 0, 2), make_compression("none", 0.1, 1))
    model, rng = make_model(), np.random.default_rng(seed)
    server.optimizer = Optimizer(model, SGD())
    server.cargo = Cargo(model, server.optimizer, server.compression)
    sent: list[Message] = []
    server.channel = SimpleNamespace(send=lambda _, message: sent.append(message) or 0)  # type: ignore[assignment]
    server._take(Event(0, Message(HELLO)))
    server.leases.begin(0, 2)
    server._hand_out()
    rows = np.array([1, 4])
    server._take(Event(0, Message(ROWS, {}, (rows,))))
    old_dense, old_rows = sent[0].arrays[0].copy(), sent[1].arrays[0].copy()
    with torch.no_grad():
        for weight in server.optimizer.weights.values():  # as if other updates had been applied in the meantime
            weight.add_(torch.from_numpy(rng.normal(size=weight.shape)).float())
    dense, table = (rng.normal(size=n).astype(np.float32) for n in (9, 4))
    arrival = server._take(Event(0, Message(PUSH, {"sequence": 1, **COUNTS}, (dense, table))))
    assert isinstance(arrival, Arrival)
    server.compute(replace(arrival, staleness=1), None)  # type: ignore[arg-type]
    gradients: dict[str, Any] = {name: found.numpy() for name, found in server.optimizer.gradients()}
    now = server.cargo.weights().numpy()
    found = np.concatenate([gradients["layer.weight"].ravel(), gradients["layer.bias"]])
    np.testing.assert_allclose(found, dense + 0.7 * np.abs(dense) * (now - old_dense), rtol=1e-6)
    moved = server.optimizer.weights["table.weight"].numpy()[rows] - old_rows
    expected = table.reshape(2, 2) + 0.7 * np.abs(table.reshape(2, 2)) * moved
    np.testing.assert_allclose(gradients["table.weight"], expected, rtol=1e-6)
    assert np.abs(expected - table.reshape(2, 2)).max() > 0.01
