"""Local SGD and DiLoCo compared with plain implementations that use torch's own optimizers."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from helpers.strategies import POINTS, points, train_rank
from helpers.training import SMALL, events, load_part, weights
from helpers.workers import spawn_workers

from tenor.errors import UsageError
from tenor.training.strategies import make_strategy
from tenor.training.tasks.points import Points
from tenor.world import World

EXACT = {"precision": "fp64", "clip": 0.0, "decay": "none", "warmup_epochs": 0.0, "lr": 0.01, "max_steps": 22}


def train_apart(folder: Path, size: int, data: str = "points", **changes: Any) -> dict[str, np.ndarray]:
    out = folder / f"{changes['strategy']}-{size}"
    spawn_workers(size, "helpers.strategies:train_rank", 120, out=str(out), data=data, **changes)
    return weights(out)


def train_in_turn(runs: dict[str, dict[str, Any]], **shared: Any) -> None:
    """Make several runs as one rank, to pay for the start of its process only once."""
    for out, changes in runs.items():
        train_rank(out=out, **shared, **changes)


def test_averaging_after_every_step_of_plain_sgd_equals_allreduce(data: Path, tmp_path: Path) -> None:
    """On reviews with an uneven split, so that rows of the embedding travel, too."""
    names = ("task", "hidden", "embedding_dim", "batch_size", "dropout", "word_dropout")
    changes = {name: getattr(SMALL, name) for name in names} | {"optimizer": "sgd", "momentum": 0.0} | EXACT
    changes |= {"model": "deep", "lr": 0.5, "shares": "5:2:1"}
    averaged, summed = tmp_path / "local-sgd", tmp_path / "allreduce"
    runs = {str(averaged): {"strategy": "local-sgd", "sync_every": 1}, str(summed): {"strategy": "allreduce"}}
    spawn_workers(3, f"{__file__}:train_in_turn", 120, runs=runs, data=str(data), **changes)
    found = weights(averaged)
    for name, weight in weights(summed).items():
        np.testing.assert_allclose(found[name], weight, rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("strategy", [pytest.param("local-sgd", marks=pytest.mark.soak), "diloco"])
def test_weights_equal_plain_pytorch(strategy: str, tmp_path: Path) -> None:
    changes: dict[str, Any] = {**EXACT, "weight_decay": 0.01, "sync_every": 4, "epochs": 1}
    found = train_apart(tmp_path, 2, strategy=strategy, **changes)
    torch.set_default_dtype(torch.float64)
    try:
        expected = plain_training(points(strategy=strategy, **changes), strategy == "diloco")
    finally:
        torch.set_default_dtype(torch.float32)
    for name, weight in expected.items():
        np.testing.assert_allclose(found[name], weight.numpy(), rtol=1e-9, atol=1e-12)


def plain_training(settings: Any, has_outer: bool) -> dict[str, torch.Tensor]:
    """Two workers in one process. 22 steps are five rounds of four steps and a last one of two."""
    task = Points(settings)
    outer, *inner = (task.make_model() for _ in range(3))
    steppers = [torch.optim.AdamW(model.parameters(), lr=0.01, weight_decay=0.01) for model in inner]
    stepper = torch.optim.SGD(
        outer.parameters(), lr=0.7 if has_outer else 1.0, momentum=0.9 * has_outer, nesterov=has_outer
    )
    for k in range(22):
        for rank, (model, optimizer) in enumerate(zip(inner, steppers, strict=True)):
            batch = load_part(task, 0, k, rank, np.ones(2))
            optimizer.zero_grad()
            torch.nn.functional.cross_entropy(model(batch), batch.labels).backward()
            optimizer.step()
        if k % 4 == 3 or k == 21:
            meet(outer, inner, stepper)
    return {name: weight.detach() for name, weight in outer.named_parameters()}


def meet(outer: torch.nn.Module, inner: list[torch.nn.Module], stepper: torch.optim.Optimizer) -> None:
    for weight, *parts in zip(outer.parameters(), *(model.parameters() for model in inner), strict=True):
        weight.grad = weight.detach() - torch.stack([part.detach() for part in parts]).mean(0)
    stepper.step()
    for model in inner:
        model.load_state_dict(outer.state_dict())


@pytest.mark.serial
def test_waiting_at_the_end_of_an_epoch_is_reported_with_the_next_step(tmp_path: Path) -> None:
    changes = {"strategy": "local-sgd", "sync_every": 1000, "epochs": 2, "slowdown": "1:8"}
    spawn_workers(2, "helpers.strategies:train_rank", 120, out=str(tmp_path / "run"), data="points", **changes)
    first, second = events(tmp_path / "run")
    assert first["wait_seconds"] == [0, 0]
    fast, slow = second["wait_seconds"]
    assert fast > 0.3 * first["compute_seconds"][1] and slow < fast


def test_balancing_is_refused_without_agreement_in_every_step() -> None:
    with pytest.raises(UsageError, match="balance"):
        make_strategy(replace(POINTS, strategy="diloco", balance="epoch"), World())
