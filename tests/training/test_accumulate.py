"""Micro-batches add up to the gradient of the whole batch."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch
from helpers.training import SMALL, load_whole, losses, run, weights

from tenor.groups.alone import Alone
from tenor.training.optim.optimizers import SGD, Optimizer
from tenor.training.strategies.allreduce import AllReduce
from tenor.training.strategies.single import Single
from tenor.training.tasks.reviews import Reviews


@pytest.fixture(autouse=True)
def one_thread() -> Iterator[None]:
    """Threads that spin while they wait make tiny products slow on a busy machine."""
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


@pytest.mark.parametrize("strategy", [Single, AllReduce])
@pytest.mark.parametrize("count", [2, 3, 100])
def test_gradients_add_up(data: Path, strategy: type[Single | AllReduce], count: int) -> None:
    found = []
    for accumulate in (1, count):
        task = Reviews(data, replace(SMALL, accumulate=accumulate))
        model = task.make_model().double()
        optimizer = Optimizer(model, SGD())
        chosen = strategy()
        chosen.setup(model, optimizer, Alone())
        loss, weight = chosen.compute(load_whole(task, 0, 0), task.objective)
        tallies = torch.tensor([loss, weight], dtype=torch.float64)
        chosen.exchange(tallies)
        found.append((loss, weight, dict(optimizer.gradients())))
        task.close()
    (loss, weight, whole), (loss_too, weight_too, pieced) = found
    assert (loss_too, weight_too) == (pytest.approx(loss, rel=1e-12), weight)
    for name, gradient in whole.items():
        torch.testing.assert_close(pieced[name], gradient, rtol=1e-10, atol=1e-14)


def test_two_workers_train_the_same_with_micro_batches(data: Path, tmp_path: Path) -> None:
    for accumulate, workers in ((1, "1"), (3, "2")):  # one process starts faster and is exact to rounding
        out = tmp_path / str(accumulate)
        run(data, out, max_steps=20, precision="fp64", keep="last", workers=workers, accumulate=accumulate)
    np.testing.assert_allclose(losses(tmp_path / "3"), losses(tmp_path / "1"), rtol=1e-9)
    expected = weights(tmp_path / "1")
    for name, found in weights(tmp_path / "3").items():
        assert np.abs(found - expected[name]).max() < 1e-8 * np.abs(expected[name]).max(), name
