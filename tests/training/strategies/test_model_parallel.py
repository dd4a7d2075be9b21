"""A model split over several ranks, and several rows of such ranks, train like one process."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from helpers.strategies import SHORT, train_rank
from helpers.training import SMALL, events, losses, run, weights
from helpers.workers import spawn_workers
from training.launching.test_launchers import MPI_VARIABLES, MPIRUN, finish, needs_mpi, start, tenor_train

from tenor.errors import UsageError
from tenor.training.strategies import make_strategy
from tenor.world import World

EXACT: dict[str, Any] = {
    "max_steps": 20,
    "precision": "fp64",
    "keep": "last",
    "clip": 0.05,
}  # every step exceeds it
TWO_LAYERS = {"layers": 2, "bidirectional": True, "pooling": "last"}


@pytest.fixture(scope="module")
def alone(data: Path, tmp_path_factory: pytest.TempPathFactory) -> dict[int, Path]:
    """Single runs by their number of layers."""
    out = tmp_path_factory.mktemp("alone")
    for layers, changes in ((1, {}), (2, TWO_LAYERS)):
        run(data, out / str(layers), strategy="single", **EXACT, **changes)
    return {layers: out / str(layers) for layers in (1, 2)}


def assert_same(found: Path, expected: Path) -> None:
    np.testing.assert_allclose(losses(found), losses(expected), rtol=1e-9)
    assert len(losses(found)) == EXACT["max_steps"]
    others = weights(expected)
    for name, weight in weights(found).items():
        assert np.abs(weight - others[name]).max() < 1e-9 * np.abs(others[name]).max(), name


@pytest.mark.parametrize(
    ("strategy", "workers", "layers", "changes"),
    [
        ("model-parallel", 2, 1, {}),
        pytest.param("model-parallel", 3, 2, TWO_LAYERS, marks=pytest.mark.soak),
        ("hybrid", 4, 1, {"shares": "5:2", "accumulate": 3}),
        pytest.param("hybrid", 4, 1, {}, marks=pytest.mark.soak),
        pytest.param("hybrid", 6, 2, {**TWO_LAYERS, "model_parallel": 3}, marks=pytest.mark.soak),
    ],
)
def test_it_is_exact_to_rounding(
    data: Path,
    alone: dict[int, Path],
    tmp_path: Path,
    strategy: str,
    workers: int,
    layers: int,
    changes: dict[str, Any],
) -> None:
    result = run(data, tmp_path / "run", strategy=strategy, workers=str(workers), **EXACT, **changes)
    assert result["workers"] == workers
    assert_same(tmp_path / "run", alone[layers])
    assert (result["steps"], result["test"]) == tuple(
        events(alone[layers], "end")[0][name] for name in ("steps", "test")
    )
    assert sum(event["samples"] for event in events(tmp_path / "run")) == 20 * 32
    for event in events(tmp_path / "run"):
        assert event["samples"] == sum(event["shares"])  # each row of ranks counts its samples once
        assert event["bytes_sent"] > 0


@needs_mpi
@pytest.mark.soak
@pytest.mark.parametrize(("strategy", "ranks"), [("model-parallel", 2), ("hybrid", 4)])
def test_it_works_over_mpi(data: Path, alone: dict[int, Path], tmp_path: Path, strategy: str, ranks: int) -> None:
    small = ["--batch-size", "32", "--epochs", "2", "--dropout", "0.2", "--word-dropout", "0.1", "--keep", "last"]
    small += ["--clip", "0.05", "--ngram-bits", "12", "--cell", "lstm", "--embeddings", "none", "--no-bidirectional"]
    small += ["--input-dropout", "0.2", "--characters", "0"]
    options = ["--backend", "mpi", "--strategy", strategy, "--precision", "fp64", *small]
    command = [str(MPIRUN), "-n", str(ranks), *tenor_train(data, tmp_path / "run", *options, "--max-steps", "20")]
    finish(start(command, **MPI_VARIABLES))
    assert_same(tmp_path / "run", alone[1])


def test_waiting_within_a_step_does_not_count_as_computing(data: Path, tmp_path: Path) -> None:
    run(data, tmp_path / "run", strategy="model-parallel", workers="2", max_steps=12, hidden=96)
    steps = events(tmp_path / "run")
    for rank in range(2):
        compute = sum(event["compute_seconds"][rank] for event in steps[1:-1])
        wait = sum(event["wait_seconds"][rank] for event in steps[2:])  # reported one step later
        elapsed = steps[-2]["seconds"] - steps[0]["seconds"]  # on the clock of rank 0; others differ a little
        assert 0 < compute + wait <= 1.1 * elapsed


def test_one_process_resumes_from_a_checkpoint_of_two(tmp_path: Path) -> None:
    """A run stopped with a checkpoint in two parts and resumed by one process equals a run of one process."""
    run, exact = str(tmp_path / "run"), {"max_steps": SHORT, "precision": "fp64"}
    ranks = spawn_workers(2, "helpers.strategies:stop_rank", 60, out=run, strategy="model-parallel", **exact)
    assert ranks == [15, 15]
    names = sorted(path.suffixes for path in Path(run, "checkpoints").iterdir())
    assert names == [[".json"], [".part-1", ".safetensors"], [".safetensors"]]
    train_rank(run, resume=True, strategy="single", **exact)
    train_rank(str(tmp_path / "alone"), strategy="single", **exact)
    np.testing.assert_allclose(losses(Path(run)), losses(tmp_path / "alone"), rtol=1e-9)
    assert len(losses(Path(run))) == SHORT


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"strategy": "hybrid"}, "cannot divide 3 workers into models of model_parallel 2"),
        ({"strategy": "hybrid", "model_parallel": 3, "balance": "epoch"}, "balance epoch cannot be combined"),
        ({"strategy": "model-parallel", "precision": "bf16"}, "bf16 cannot be combined with strategy model-parallel"),
    ],
)
def test_settings_that_do_not_fit_are_refused(changes: dict[str, Any], said: str) -> None:
    with pytest.raises(UsageError, match=said):
        make_strategy(replace(SMALL, **changes), World(0, 3, 0, 3))
