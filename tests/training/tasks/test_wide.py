"""Training the wide part: against dense features in plain torch, and what it brings."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from helpers.corpora import make_reviews, write_json_lines
from helpers.together import train_together
from helpers.training import SMALL, load_part, run
from safetensors.torch import load_file
from torch.nn import functional as F  # noqa: N812

import tenor
from tenor.models.inference import Inference
from tenor.training.tasks.reviews import Reviews, choose_bits

STEPS = 5
PLAIN: dict[str, Any] = {"model": "wide", "precision": "fp64", "decay": "none", "warmup_epochs": 0.0, "clip": 0.0}
SETTINGS = replace(SMALL, max_steps=STEPS, epochs=1, lr=0.01, wide_lr=0.7, class_weights="1.5,1", **PLAIN)


@pytest.fixture
def in_doubles() -> Iterator[None]:
    torch.set_default_dtype(torch.float64)
    yield
    torch.set_default_dtype(torch.float32)


def dense_rows(task: Reviews, rows: np.ndarray) -> torch.Tensor:
    """(rows, buckets): the importance of the n-grams that a row has, scaled to length 1."""
    matrix = np.zeros((len(rows), len(task.batches.importance)))
    for at, row in enumerate(rows):
        tokens, lengths = task.train.gather(np.array([row]))
        assert task.batches._index is not None
        matrix[at, task.batches._index(tokens, lengths).buckets] = 1.0
    matrix *= task.batches.importance
    return torch.from_numpy(matrix / np.linalg.norm(matrix, axis=1, keepdims=True))


@pytest.mark.parametrize("strategy", ["allreduce", "async"])
@pytest.mark.usefixtures("in_doubles")
def test_the_wide_part_equals_dense_features_in_plain_torch(strategy: str, data: Path) -> None:
    """Three workers with different shares; async is tried with one process, which is its own server."""
    size = 3 if strategy == "allreduce" else 1
    settings = replace(SETTINGS, strategy=strategy, **({"shares": "5:2:1"} if size > 1 else {}))
    task = Reviews(data, settings)
    loops = train_together(task, settings, size)
    weight, bias = torch.zeros(1 << 12, requires_grad=True), torch.zeros(1, requires_grad=True)
    start = (0.064 / settings.batch_size) ** 2
    optimizer = torch.optim.Adagrad([weight, bias], lr=0.7, initial_accumulator_value=start, eps=1e-10)
    for k in range(STEPS):
        rows = task.order.batch(0, k)
        labels = torch.from_numpy(task.train.labels[rows].astype(np.float64))
        each = F.binary_cross_entropy_with_logits(dense_rows(task, rows) @ weight + bias, labels, reduction="none")
        weights = torch.where(labels == 0, 1.5, 1.0)
        optimizer.zero_grad()
        ((each * weights).sum() / weights.sum()).backward()
        optimizer.step()
    task.close()
    for loop in loops:
        np.testing.assert_allclose(
            loop.optimizer.weights["wide.ngrams.weight"][:, 0], weight.detach(), rtol=1e-4, atol=1e-6
        )
        np.testing.assert_allclose(loop.optimizer.weights["wide.bias"], bias.detach(), rtol=1e-4)


def test_a_batch_holds_the_ngrams_of_a_worker_and_the_buckets_of_all(data: Path) -> None:
    task = Reviews(data, replace(SMALL, model="wide"))
    parts = [load_part(task, 0, 1, rank, [3.0, 1.0]) for rank in range(2)]
    assert task.batches._index is not None
    every = task.batches._index(*task.train.gather(task.order.batch(0, 1)))
    task.close()
    for part in parts:
        assert part.rows["wide.ngrams"].tolist() == every.buckets.tolist()
        assert part.ngrams is not None and len(part.ngrams.starts) == len(part) + 1
        assert part.num_padded == int(part.lengths.max()) * len(part)
    joined = [ids for part in parts if part.ngrams for ids in part.ngrams.ids.tolist()]
    assert joined == every.ids.tolist()


def test_the_parts_are_combined_on_the_validation_rows(data: Path, tmp_path: Path) -> None:
    """The fitted combination has a smaller log loss than the mean of the parts, and the run folder keeps it."""
    result = run(data, tmp_path / "run", max_steps=30)
    task = Reviews(data, SMALL)
    model = task.make_model()
    model.load_state_dict(load_file(tmp_path / "run/model.safetensors"))
    part = task.splits["valid"]
    logits = Inference(model).logits(*part.gather(np.arange(len(part))))
    labels = torch.from_numpy(part.labels.astype(np.float32))
    task.close()
    fitted, mean = model.combination(torch.from_numpy(logits))[:, 0], torch.from_numpy(logits.mean(0))[:, 0]
    losses = [float(F.binary_cross_entropy_with_logits(found, labels)) for found in (fitted, mean)]
    assert losses[0] < losses[1] - 1e-3
    assert result["valid"]["log_loss"] == pytest.approx(losses[0], rel=1e-3)


@pytest.fixture(scope="module", params=["binary", "stars"])
def labelled(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp(request.param)
    reviews = write_json_lines(folder / "reviews.jsonl", make_reviews(1500, seed=3))
    tenor.prepare([reviews], folder / "data", tenor.PrepareSettings(labels=request.param, workers=1))
    return folder / "data"


@pytest.mark.parametrize("model", ["wide", "deep", "wide-deep"])
def test_every_model_learns_evaluates_and_predicts(model: str, labelled: Path, tmp_path: Path) -> None:
    result = run(labelled, tmp_path / "run", model=model, epochs=3)
    assert result["test"]["auc"] > 0.55
    assert tenor.evaluate(tmp_path / "run", labelled).accuracy == pytest.approx(result["test"]["accuracy"])
    loaded = tenor.load(tmp_path / "run")
    assert (loaded.parts.spec.wide is None, loaded.parts.spec.deep is None) == (model == "deep", model == "wide")
    assert loaded.predict(["a superb film", ""])[1].known_words == 0


def test_the_table_grows_with_the_text() -> None:
    assert [choose_bits(tokens) for tokens in (10, 100_000, 5_000_000, 10**9)] == [16, 16, 22, 24]
