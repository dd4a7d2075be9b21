"""Whole steps compared with plain PyTorch: class weights, clipping, learning rates, averages, outer momentum."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from helpers.strategies import POINTS
from helpers.together import make_loop, together, train_together
from helpers.training import SMALL, load_part, load_whole
from torch import Tensor, nn
from torch.nn import functional as F  # noqa: N812

from tenor.groups import Alone
from tenor.models.embedding import RowEmbedding
from tenor.training.batch import TrainBatch
from tenor.training.settings import TrainSettings
from tenor.training.strategies.grid import make_grid
from tenor.training.tasks.base import Task
from tenor.training.tasks.points import Points
from tenor.training.tasks.reviews import Reviews

WEIGHTS = (1.0, 4.0, 0.5, 2.0)
PLAIN: dict[str, Any] = {"optimizer": "sgd", "momentum": 0.0, "clip": 0.0, "decay": "none", "warmup_epochs": 0.0}
BASE = replace(POINTS, epochs=1, hidden=16, lr=0.3, precision="fp64", max_steps=6, **PLAIN)
WEIGHTED = replace(BASE, class_weights="1,4,0.5,2")
SHARES = np.array([5.0, 2.0, 1.0])


@pytest.fixture(autouse=True)
def in_doubles() -> Iterator[None]:
    torch.set_default_dtype(torch.float64)
    yield
    torch.set_default_dtype(torch.float32)


@cache
def task_of(settings: TrainSettings) -> Points:
    """Cached, because generating the points takes a moment."""
    return Points(settings)


def mean_loss(model: nn.Module, batch: TrainBatch, weights: tuple[float, ...] | None = None) -> Tensor:
    """The plain loss: torch divides by the sum of weights, and inputs are ids of the whole vocabulary."""
    if batch.rows:
        batch = replace(batch, inputs=batch.rows["deep.embedding"][batch.inputs])
    logits = model(batch)
    if logits.dim() == 3:  # reviews of two classes
        logits = logits[0, :, 0]
        return F.binary_cross_entropy_with_logits(logits, batch.labels.to(logits))
    return F.cross_entropy(logits, batch.labels, torch.tensor(weights) if weights else None)


def plain_model(task: Task) -> nn.Module:
    """The model with dense gradients for its tables."""
    model = task.make_model()
    for module in model.modules():
        if isinstance(module, RowEmbedding):
            module.weight.requires_grad_()
    return model.train()


def assert_equal(found: dict[str, Tensor], expected: nn.Module) -> None:
    for name, weight in expected.named_parameters():
        np.testing.assert_allclose(found[name].numpy(), weight.detach().numpy(), rtol=1e-9, atol=1e-12, err_msg=name)


def plain_steps(
    task: Task,
    steps: int,
    rate: Callable[[int], float],
    *,
    clip: float = 0.0,
    weights: tuple[float, ...] | None = None,
    make: Callable[[list[nn.Parameter]], torch.optim.Optimizer] = lambda weights: torch.optim.SGD(weights, lr=1.0),
) -> tuple[nn.Module, list[float]]:
    """Train one process on whole batches; return the model and the losses."""
    model, losses = plain_model(task), []
    optimizer = make(list(model.parameters()))
    for k in range(steps):
        optimizer.zero_grad()
        loss = mean_loss(model, load_whole(task, 0, k), weights)
        loss.backward()
        norm = float(torch.cat([weight.grad.flatten() for weight in model.parameters()]).norm())
        if clip and norm > clip:  # torch's own clipping adds 1e-6 to the norm
            for weight in model.parameters():
                weight.grad *= clip / norm
        optimizer.param_groups[0]["lr"] = rate(k)
        optimizer.step()
        losses.append(float(loss.detach()))
    return model, losses


def logged(loop: Any, name: str) -> list[float]:
    return [event[name] for event in loop.recorder.events if event["event"] == "step"]


@pytest.mark.parametrize("clip", [0.2, 0.0])
def test_rates_and_clipping_of_each_step(clip: float) -> None:
    """Warm-up over the first 4 of 118 steps, then linear decay; every step exceeds the limit of 0.2."""
    settings = replace(BASE, clip=clip, decay="linear", warmup_epochs=4 / 118, max_steps=9)
    task = task_of(settings)
    (loop,) = train_together(task, settings, 1)
    rates = [0.3 * 1 / 4, 0.3 * 2 / 4, 0.3 * 3 / 4, 0.3, *(0.3 * (118 - k) / 114 for k in range(4, 9))]
    expected, losses = plain_steps(task, 9, rates.__getitem__, clip=clip)
    assert logged(loop, "lr") == pytest.approx(rates, rel=1e-12)
    assert logged(loop, "loss") == pytest.approx(losses, rel=1e-9)
    assert_equal(loop.optimizer.weights, expected)


def test_a_gradient_within_the_limit_is_not_scaled() -> None:
    settings = replace(BASE, clip=100.0)
    (loop,) = train_together(task_of(settings), settings, 1)
    expected, _ = plain_steps(task_of(settings), 6, lambda k: 0.3)
    assert_equal(loop.optimizer.weights, expected)


@pytest.mark.parametrize("strategy", ["single", "allreduce", "model-parallel", "hybrid"])
def test_class_weights_divide_by_their_sum(strategy: str) -> None:
    size = {"single": 1, "allreduce": 3, "model-parallel": 2, "hybrid": 4}[strategy]
    settings = replace(WEIGHTED, strategy=strategy, shares="5:2:1" if size == 3 else "", clip=0.5)
    loops = train_together(task_of(settings), settings, size)
    expected, losses = plain_steps(task_of(settings), 6, lambda k: 0.3, clip=0.5, weights=WEIGHTS)
    for loop in loops:
        assert logged(loop, "loss") == pytest.approx(losses, rel=1e-9)
        assert sum(logged(loop, "samples")) == 6 * 256
        assert_equal(loop.optimizer.weights, expected)


def test_a_row_has_consecutive_ranks() -> None:
    """Six ranks, two per model: 0 and 1, 2 and 3, 4 and 5."""
    grids = together(6, lambda seat: make_grid(seat, 2))
    assert [(grid.row.rank, grid.row.size) for grid in grids] == [(0, 2), (1, 2)] * 3
    assert [(grid.column.rank, grid.column.size) for grid in grids] == [(n, 3) for n in (0, 0, 1, 1, 2, 2)]


@pytest.mark.parametrize("compress", ["none", "top-k"])
def test_rows_of_a_table_are_summed_over_workers(compress: str, data: Path) -> None:
    """Three workers on reviews; top-k sends all numbers here."""
    how = {"compress": compress, **({"top_k": 1.0} if compress == "top-k" else {})}
    settings = replace(SMALL, strategy="allreduce", shares="5:2:1", lr=0.5, max_steps=4, **how)
    settings = replace(settings, model="deep", dropout=0.0, word_dropout=0.0, precision="fp64", epochs=1, **PLAIN)
    task = Reviews(data, settings)
    loops = train_together(task, settings, 3)
    expected, losses = plain_steps(task, 4, lambda k: 0.5)
    task.close()
    for loop in loops:
        assert logged(loop, "loss") == pytest.approx(losses, rel=1e-9)
        assert_equal(loop.optimizer.weights, expected)


@pytest.mark.parametrize("optimizer", ["adam", "sgd", "adagrad"])
def test_rules_and_weight_decay_equal_torch(optimizer: str) -> None:
    make = {
        "adam": lambda weights: torch.optim.AdamW(weights, weight_decay=0.1),
        "sgd": lambda weights: torch.optim.SGD(weights, momentum=0.8, weight_decay=0.1),
        "adagrad": lambda weights: torch.optim.Adagrad(weights, weight_decay=0.1),
    }[optimizer]
    momentum = 0.8 if optimizer == "sgd" else 0.9
    settings = replace(BASE, optimizer=optimizer, momentum=momentum, weight_decay=0.1, lr=0.05)
    (loop,) = train_together(task_of(settings), settings, 1)
    expected, _ = plain_steps(task_of(settings), 6, lambda k: 0.05, make=make)
    assert_equal(loop.optimizer.weights, expected)


def test_averages_weight_workers_by_their_samples() -> None:
    """Three workers that average after every two of seven steps, and after the last step."""
    settings = replace(WEIGHTED, strategy="local-sgd", sync_every=2, shares="5:2:1", max_steps=7)
    task = task_of(settings)
    loops = train_together(task, settings, 3)
    models = [plain_model(task) for _ in range(3)]
    sums = np.zeros(3)
    for k in range(7):
        for rank, model in enumerate(models):
            batch = load_part(task, 0, k, rank, SHARES)
            model.zero_grad()
            mean_loss(model, batch, WEIGHTS).backward()
            sums[rank] += np.array(WEIGHTS)[batch.labels.numpy()].sum()
            with torch.no_grad():
                for weight in model.parameters():
                    weight.sub_(0.3 * weight.grad)
        if k % 2 or k == 6:
            averages = [
                sum(share * one.detach() for share, one in zip(sums / sums.sum(), own, strict=True))
                for own in zip(*(model.parameters() for model in models), strict=True)
            ]
            for model in models:
                nn.utils.vector_to_parameters(nn.utils.parameters_to_vector(averages), model.parameters())
            sums[:] = 0.0
    for loop in loops:
        assert_equal(loop.optimizer.weights, models[0])
        assert [event["step"] for event in loop.recorder.events if event["event"] == "step"] == [2, 4, 6, 7]


def outer_step(start: Tensor, average: Tensor, velocity: Tensor, rows: Tensor) -> None:
    """Nesterov momentum, written out, for the given rows only."""
    change = start[rows] - average[rows]
    velocity[rows] = 0.9 * velocity[rows] + change
    start[rows] -= 0.7 * (change + 0.9 * velocity[rows])


def test_the_outer_momentum_of_rows_is_kept(data: Path) -> None:
    """Two workers on reviews: the momentum of a word is kept until the word occurs again."""
    settings = replace(SMALL, strategy="diloco", sync_every=2, dropout=0.0, word_dropout=0.0, lr=0.5, max_steps=8)
    settings = replace(settings, model="deep", precision="fp64", epochs=1, **PLAIN)
    task = Reviews(data, settings)
    loops = train_together(task, settings, 2)
    models = [plain_model(task) for _ in range(2)]
    start = {name: weight.detach().clone() for name, weight in models[0].named_parameters()}
    velocity = {name: torch.zeros_like(weight) for name, weight in start.items()}
    touched: set[int] = set()
    for k in range(8):
        for rank, model in enumerate(models):
            batch = load_part(task, 0, k, rank, np.ones(2))
            touched |= set(batch.rows["deep.embedding"].tolist())
            optimizer = torch.optim.SGD(model.parameters(), lr=0.5)
            mean_loss(model, batch).backward()
            optimizer.step()
            optimizer.zero_grad()
        if k % 2:
            both = [dict(model.named_parameters()) for model in models]
            for name, weight in start.items():
                rows = torch.tensor(sorted(touched)) if name == "deep.embedding.weight" else torch.arange(len(weight))
                outer_step(weight, (both[0][name] + both[1][name]).detach() / 2, velocity[name], rows)
            for model in models:
                model.load_state_dict(start, strict=False)
            touched = set()
    task.close()
    for loop in loops:
        assert_equal(loop.optimizer.weights, models[0])


@pytest.mark.parametrize("weights", [None, WEIGHTS])
def test_hogwild_moves_the_weights_like_one_process(weights: tuple[float, ...] | None, tmp_path: Path) -> None:
    """One step of two workers on unequal parts of a batch, both from the same weights."""
    settings = replace(WEIGHTED if weights else BASE, strategy="hogwild", max_steps=1)
    task = task_of(settings)
    loops = [make_loop(task, settings, rank_of(rank), tmp_path / "meeting") for rank in range(2)]
    steps = []
    for rank, loop in enumerate(loops):
        batch = load_part(task, 0, 0, rank, np.array([3.0, 1.0]))
        steps.append((loop.strategy, torch.tensor(loop.strategy.compute(batch, task.objective))))
    for strategy, tallies in steps:
        strategy.exchange(tallies)
        strategy.apply(0.3)
    expected, _ = plain_steps(task, 1, lambda k: 0.3, weights=weights)
    for loop in loops:
        assert_equal(dict(loop.model.state_dict()), expected)
        assert_equal(loop.optimizer.weights, expected)


def rank_of(rank: int) -> Alone:
    """A rank of a group of two that does not wait for the other."""
    group = Alone()
    group.rank, group.size = rank, 2
    return group
