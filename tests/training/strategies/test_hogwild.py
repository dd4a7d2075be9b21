"""Lock-free training: which workers may share memory, and that no update is lost without collisions."""

from __future__ import annotations

import time
from pathlib import Path

import numpy as np
import pytest
import torch
from helpers.strategies import points
from helpers.training import load_part, load_whole
from torch import nn

from tenor.errors import UsageError
from tenor.groups import Alone
from tenor.training.optim.optimizers import SGD, Optimizer
from tenor.training.strategies.hogwild import Hogwild, shared_memory
from tenor.training.tasks.points import Points
from tenor.world import World


def test_workers_on_other_machines_are_refused() -> None:
    assert shared_memory(World()) is None
    assert shared_memory(World(0, 2, 0, 2, rendezvous="file:///scratch/rendezvous")) == Path("/scratch/weights")
    with pytest.raises(UsageError, match="one machine"):
        shared_memory(World(0, 2, 0, 1, rendezvous="tcp://first:29500"))


def test_waiting_for_other_workers_does_not_count_as_computing(tmp_path: Path) -> None:
    class Late(Alone):
        def gather(self, tensor: torch.Tensor) -> torch.Tensor:
            time.sleep(0.2)
            return super().gather(tensor)

    task = Points(points())
    model = task.make_model()
    strategy = Hogwild(4, None)
    strategy.setup(model, Optimizer(model, SGD()), Late())
    waits = []
    for _ in range(2):
        strategy.compute(load_whole(task, 0, 0), task.objective)
        waits.append((strategy.waited_inside, strategy.exchange(torch.ones(2)).wait_seconds))
    (inside, told), (later, _) = waits
    assert inside == told >= 0.2 > later


@pytest.mark.parametrize("size", [2, 8])
def test_weighted_classes_move_the_weights_as_in_plain_torch(size: int, tmp_path: Path) -> None:
    """Workers that compute from the same weights move them by the gradient of the whole batch's weighted mean."""
    class_weights = [8.0, 1.0, 0.5, 3.0]
    task = Points(points(class_weights="8,1,0.5,3", batch_size=40))
    whole = load_whole(task, 0, 0)
    plain = task.make_model()
    weight = torch.tensor(class_weights)
    torch.nn.functional.cross_entropy(plain(whole), whole.labels, weight=weight).backward()
    expected = {name: p.detach() - 0.5 * p.grad for name, p in plain.named_parameters()}

    team = []
    for rank in range(size):
        model = task.make_model()
        optimizer = Optimizer(model, SGD(momentum=0.0))
        strategy = Hogwild(4, tmp_path / "weights")
        strategy.setup(model, optimizer, Alone())
        loss, own = strategy.compute(load_part(task, 0, 0, rank, np.ones(size)), task.objective)
        strategy.exchange(torch.tensor([loss, own]))
        team.append((model, strategy))
    for _, strategy in team:
        strategy.apply(0.5)
    for name, parameter in team[0][0].named_parameters():
        torch.testing.assert_close(parameter.detach(), expected[name])


def test_both_workers_see_each_update(tmp_path: Path) -> None:
    """Two workers that step one after another: no update is lost, and both models hold the sum of both updates."""
    pair = []
    for _ in range(2):
        torch.manual_seed(3)
        model = nn.Linear(5, 3)
        optimizer = Optimizer(model, SGD())
        strategy = Hogwild(4, tmp_path / "weights")
        strategy.setup(model, optimizer, Alone())
        strategy.share = 0.5
        pair.append((model, optimizer, strategy))
    start = pair[0][0].weight.detach().clone()
    for scale, (model, _, strategy) in enumerate(pair, 1):
        model.weight.grad = torch.full_like(model.weight, float(scale))
        strategy.apply(lr=0.2)
    for model, optimizer, _ in pair:
        torch.testing.assert_close(model.weight.detach(), start - 0.2 * 0.5 * 3)
        torch.testing.assert_close(optimizer.weights["weight"], model.weight.detach())
