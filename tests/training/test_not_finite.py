"""All ranks skip a step whose gradient is not finite, count it, and give up after ten in a row."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch
from helpers.training import SMALL, events, weights
from helpers.workers import spawn_workers

from tenor.errors import TenorError, TrainingError
from tenor.training.assemble import train_as
from tenor.training.job import TrainingJob
from tenor.training.runs.folder import RunFolder
from tenor.training.runs.recorder import FirstRankRecorder
from tenor.training.strategies.allreduce import AllReduce
from tenor.world import World


def poisoned_training(data: str, out: str, meeting: str, poison: list[int]) -> dict[str, Any]:
    """Train as one of two ranks. On rank 1, the gradient of the steps in `poison` is NaN."""
    import os

    rank = int(os.environ["RANK"])
    compute, seen = AllReduce.compute, iter(range(1, 1000))

    def spoil(self: AllReduce, batch: Any, objective: Any) -> tuple[float, float]:
        loss, weight = compute(self, batch, objective)
        if next(seen) in poison and rank == 1:
            for _, gradient in self.optimizer.gradients():
                gradient.fill_(torch.nan)
            self.num_started = 0  # buckets that were already sent are sent again, with NaN
        return loss, weight

    AllReduce.compute = spoil  # type: ignore[method-assign]
    AllReduce._mark_ready = lambda self, index, name, parameter: None  # type: ignore[method-assign] # no early start
    world = World(rank, 2, rank, 2, rendezvous=f"file://{meeting}")
    job = TrainingJob(data, out, replace(SMALL, max_steps=30, workers="2"), False)
    try:
        return train_as(world, job, lambda event: None, lambda: 0)
    except TrainingError as error:
        return {"error": str(error)}


@pytest.mark.soak  # tests/training/test_loop.py does the same with threads
def test_all_ranks_skip_together_and_count(data: Path, tmp_path: Path) -> None:
    (tmp_path / "run").mkdir()
    call = {"data": str(data), "out": str(tmp_path / "run"), "meeting": str(tmp_path / "meeting")}
    results = spawn_workers(2, f"{__file__}:poisoned_training", 120, **call, poison=[3, 4, 20])
    assert [result["skipped_steps"] for result in results] == [3, 3]
    assert results[0]["weights_sha256"] == results[1]["weights_sha256"]
    assert all(torch.isfinite(torch.from_numpy(w)).all() for w in weights(tmp_path / "run").values())
    assert len(events(tmp_path / "run")) == 30


@pytest.mark.soak  # tests/training/test_loop.py does the same with threads
def test_training_gives_up_after_ten_steps_in_a_row(data: Path, tmp_path: Path) -> None:
    (tmp_path / "run").mkdir()
    call = {"data": str(data), "out": str(tmp_path / "run"), "meeting": str(tmp_path / "meeting")}
    results = spawn_workers(2, f"{__file__}:poisoned_training", 120, **call, poison=list(range(5, 15)))
    assert all("10 steps in a row, the last at step 14" in result["error"] for result in results)


def test_weights_that_are_not_finite_are_not_saved(tmp_path: Path) -> None:
    scribe = FirstRankRecorder(RunFolder(tmp_path), 1, lambda event: None)
    with pytest.raises(TenorError, match="weights are not finite"):
        scribe.save_model({"good": torch.ones(3), "bad": torch.tensor([1.0, float("inf")])})
    assert not (tmp_path / "model.safetensors").exists()
