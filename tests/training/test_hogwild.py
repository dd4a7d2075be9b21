"""What is particular to lock-free training: who may share memory, and that nothing is lost where nobody collides."""

from __future__ import annotations

import time
from pathlib import Path

import numpy as np
import pytest
import torch
from helpers.strategies import points
from torch import nn

from tenor.errors import UsageError
from tenor.training.groups import Alone
from tenor.training.optimizers import SGD, Optimizer
from tenor.training.points import Points
from tenor.training.strategies.hogwild import Hogwild, shared_memory
from tenor.world import World


def test_workers_on_other_machines_are_refused() -> None:
    assert shared_memory(World()) is None
    assert shared_memory(World(0, 2, 0, 2, rendezvous="file:///scratch/rendezvous")) == Path("/scratch/weights")
    with pytest.raises(UsageError, match="one machine"):
        shared_memory(World(0, 2, 0, 1, rendezvous="tcp://first:29500"))


def test_waiting_for_the_others_to_come_back_is_no_computing(tmp_path: Path) -> None:
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
        strategy.compute(task.load(0, 0, 0, np.ones(1)), task.objective)
        waits.append((strategy.waited_inside, strategy.exchange(torch.ones(2)).wait_seconds))
    (inside, told), (later, _) = waits
    assert inside == told >= 0.2 > later


def test_both_see_what_either_writes(tmp_path: Path) -> None:
    """Two workers, one after another: no update is lost, and both models hold the sum of both."""
    pair = []
    for _ in range(2):
        torch.manual_seed(3)
        model = nn.Linear(5, 3)
        optimizer = Optimizer(model, SGD())
        strategy = Hogwild(4, tmp_path / "weights")
        strategy.setup(model, optimizer, Alone())
        strategy.part = 0.5
        pair.append((model, optimizer, strategy))
    start = pair[0][0].weight.detach().clone()
    for scale, (model, _, strategy) in enumerate(pair, 1):
        model.weight.grad = torch.full_like(model.weight, float(scale))
        strategy.apply(lr=0.2)
    for model, optimizer, _ in pair:
        torch.testing.assert_close(model.weight.detach(), start - 0.2 * 0.5 * 3)
        torch.testing.assert_close(optimizer.weights["weight"], model.weight.detach())
