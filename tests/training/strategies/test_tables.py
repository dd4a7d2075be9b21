"""Models with two embedding tables of different sizes: every table has its own touched rows, in every strategy."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import torch
from helpers.strategies import POINTS
from helpers.together import train_together
from helpers.training import load_part, load_whole
from torch import Tensor, nn
from torch.nn import functional as F  # noqa: N812

from tenor.errors import WorkerError
from tenor.groups.compression import make_compression
from tenor.models.batch import Batch
from tenor.models.embedding import RowEmbedding
from tenor.models.stage import Stage, StagedModel
from tenor.store.order import Order
from tenor.training.batch import TrainBatch
from tenor.training.gradients import backpropagate
from tenor.training.optim.optimizers import SGD, Optimizer
from tenor.training.parameter_server.cargo import Cargo
from tenor.training.parameter_server.claims import read_rows
from tenor.training.parameter_server.messages import ROWS, Message
from tenor.training.tasks.base import Task
from tenor.training.tasks.losses import make_objective

USERS, FILMS = 40, 15  # rows of the tables
STEPS = 8
PLAIN: dict[str, Any] = {"optimizer": "sgd", "momentum": 0.0, "clip": 0.0, "decay": "none", "warmup_epochs": 0.0}
SETTINGS = replace(POINTS, precision="fp64", batch_size=6, epochs=1, lr=0.5, max_steps=STEPS, **PLAIN)


class Ratings(StagedModel):
    """Whether a user likes a film, from a vector of the user and a narrower one of the film."""

    def __init__(self) -> None:
        super().__init__()
        self.users, self.films = RowEmbedding(USERS, 3), RowEmbedding(FILMS, 2)
        self.join = nn.Linear(3, 2)
        generator = torch.Generator().manual_seed(1)
        with torch.no_grad():
            for weight in self.parameters():
                weight.normal_(generator=generator)

    def stages(self) -> list[Stage]:
        return [Stage((self.users, self.films, self.join), self._decide, lambda batch: (len(batch),))]

    def _decide(self, ids: Tensor, batch: Batch) -> Tensor:
        return (self.join(self.users(ids[0])) * self.films(ids[1])).sum(1)


class RatingsTask(Task):
    def __init__(self) -> None:
        rng = np.random.default_rng(2)
        self.ids = np.stack([rng.integers(0, USERS, 60), rng.integers(0, FILMS, 60)])
        self.labels = rng.integers(0, 2, 60)
        self.order = Order(np.full(60, 2, np.int32), SETTINGS.batch_size, 0)
        self.objective = make_objective("bce", 2, [1.0, 1.0])

    def make_model(self) -> Ratings:
        return Ratings()

    def load(self, epoch: int, k: int, own: slice) -> TrainBatch:
        rows = self.order.batch(epoch, k)
        (users, at_users), (films, at_films) = (np.unique(ids, return_inverse=True) for ids in self.ids[:, rows])
        return TrainBatch(
            inputs=torch.from_numpy(np.stack([at_users, at_films])[:, own]),
            lengths=torch.full((len(rows[own]),), 2),
            keys=np.zeros(len(rows[own]), np.uint64),
            labels=torch.from_numpy(self.labels[rows[own]]),
            rows={"users": torch.from_numpy(users), "films": torch.from_numpy(films)},
            global_weight=float(len(rows)),
        )

    def measure(self, *_: object) -> None:
        return None


@pytest.fixture(autouse=True)
def in_doubles() -> Iterator[None]:
    torch.set_default_dtype(torch.float64)
    yield
    torch.set_default_dtype(torch.float32)


def plain_model() -> Ratings:
    model = Ratings()
    for table in (model.users, model.films):
        table.weight.requires_grad_()
    return model


def plain_gradient(model: Ratings, batch: TrainBatch) -> dict[str, Tensor]:
    """The gradient of the mean loss by plain torch, over whole tables."""
    model.zero_grad()
    ids = torch.stack([batch.rows["users"][batch.inputs[0]], batch.rows["films"][batch.inputs[1]]])
    F.binary_cross_entropy_with_logits(model(replace(batch, inputs=ids)), batch.labels.double()).backward()
    return {name: weight.grad for name, weight in model.named_parameters() if weight.grad is not None}


@torch.no_grad()
def plain_step(model: Ratings, batch: TrainBatch) -> None:
    with torch.enable_grad():
        gradients = plain_gradient(model, batch)
    for name, weight in model.named_parameters():
        weight.sub_(0.5 * gradients[name])


def assert_same(found: dict[str, Tensor], expected: nn.Module) -> None:
    for name, weight in expected.named_parameters():
        np.testing.assert_allclose(found[name].numpy(), weight.detach().numpy(), rtol=1e-9, atol=1e-12, err_msg=name)


@pytest.mark.parametrize(("size", "how"), [(1, {}), (3, {}), (3, {"compress": "top-k", "top_k": 1.0})])
def test_whole_batches(size: int, how: dict[str, Any]) -> None:
    settings = replace(SETTINGS, strategy="single" if size == 1 else "allreduce", **how)
    loops, expected = train_together(RatingsTask(), settings, size), plain_model()
    for k in range(STEPS):
        plain_step(expected, load_whole(RatingsTask(), 0, k))
    for loop in loops:
        assert_same(loop.optimizer.weights, expected)


@pytest.mark.parametrize("strategy", ["local-sgd", "diloco"])
def test_local_steps(strategy: str) -> None:
    """Two workers meet every two steps. Momentum of rows that nobody touched since the last meeting does not act."""
    task = RatingsTask()
    loops = train_together(task, replace(SETTINGS, strategy=strategy, sync_every=2), 2)
    models, start = [plain_model(), plain_model()], plain_model()
    velocity = {name: torch.zeros_like(weight) for name, weight in start.named_parameters()}
    touched: dict[str, set[int]] = {"users.weight": set(), "films.weight": set()}
    for k in range(STEPS):
        for rank, model in enumerate(models):
            batch = load_part(task, 0, k, rank, [1.0, 1.0])
            touched["users.weight"] |= set(batch.rows["users"].tolist())
            touched["films.weight"] |= set(batch.rows["films"].tolist())
            plain_step(model, batch)
        if k % 2:
            meet(strategy, models, start, velocity, touched)
            touched = {name: set() for name in touched}
    for loop in loops:
        assert_same(loop.optimizer.weights, start)


@torch.no_grad()
def meet(
    strategy: str, models: list[Ratings], start: Ratings, velocity: dict[str, Tensor], touched: dict[str, set[int]]
) -> None:
    own = [dict(model.named_parameters()) for model in models]
    for name, weight in start.named_parameters():
        rows = torch.tensor(sorted(touched[name])) if name in touched else torch.arange(len(weight))
        average = (own[0][name] + own[1][name])[rows] / 2
        if strategy == "diloco":
            change = weight[rows] - average
            velocity[name][rows] = 0.9 * velocity[name][rows] + change
            average = weight[rows] - 0.7 * (change + 0.9 * velocity[name][rows])
        weight[rows] = average
    for model in models:
        model.load_state_dict(start.state_dict())


def test_rows_travel_to_a_worker_and_gradients_back() -> None:
    """The worker starts from other weights; after it has pulled, its gradients are those of the server's weights."""
    task, server, worker = RatingsTask(), Ratings(), Ratings()
    with torch.no_grad():
        for weight in worker.parameters():
            weight.zero_()
    ends = [Optimizer(model, SGD()) for model in (server, worker)]
    at_server, at_worker = (
        Cargo(model, optimizer, make_compression("none", 1.0, 6))
        for model, optimizer in zip((server, worker), ends, strict=True)
    )
    batch = load_whole(task, 0, 3)
    asked = Message(ROWS, {}, tuple(batch.rows_of(name).numpy() for name in at_worker.tables))
    rows = read_rows(asked, at_server.num_rows)
    at_worker.take_weights(at_server.weights().numpy())
    at_worker.take_rows(rows, [value.numpy() for value in at_server.rows(rows)])
    backpropagate(worker, ends[1], batch, task.objective)
    parts = [part.numpy() for part in at_worker.pack_gradients(0)]
    assert at_server.fits(parts, rows) and not at_server.fits(parts, rows[::-1]) and not at_server.fits(parts, None)
    at_server.place_gradients(at_server.unpack_gradients(parts, rows), rows)
    whole = plain_gradient(plain_model(), batch)
    for name, gradient in ends[0].gradients():
        expected = whole[name][batch.rows_of(name)] if name in at_server.tables else whole[name]
        torch.testing.assert_close(gradient / len(batch), expected)


@pytest.mark.parametrize(
    "rows", [[[0, 1]], [[0, 39], [15]], [[40], [0]], [[0], [1], [2]]], ids=["one", "films", "users", "three"]
)
def test_rows_of_every_table_are_checked(rows: list[list[int]]) -> None:
    cargo = Cargo(model := Ratings(), Optimizer(model, SGD()), make_compression("none", 1.0, 6))
    with pytest.raises(WorkerError, match="rows"):
        read_rows(Message(ROWS, {}, tuple(np.array(own) for own in rows)), cargo.num_rows)


def test_rows_follow_the_batch_to_its_device() -> None:
    moved = load_whole(RatingsTask(), 0, 0).to(torch.device("meta"))
    assert moved.inputs.device.type == "meta"
    assert {name: rows.device.type for name, rows in moved.rows.items()} == {"users": "meta", "films": "meta"}
