"""The update equals that of a single process, for any number of workers and any split."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch
from helpers.training import SMALL, events, losses, run, weights
from torch import nn

from tenor.models.deep.part import Deep
from tenor.training.tasks.reviews import Reviews

STEPS = 50


@pytest.fixture(scope="module")
def alone(data: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("alone") / "run"
    run(data, out, max_steps=STEPS, precision="fp64", keep="last")
    return out


MORE_SHARES = [pytest.param(shares, marks=pytest.mark.soak) for shares in ("1:1", "1:1:1", "1:0:3", "1:1:1:1:1:1:1")]


@pytest.mark.parametrize("shares", ["5:2:1", *MORE_SHARES])
def test_double_precision_is_exact_to_rounding(data: Path, alone: Path, tmp_path: Path, shares: str) -> None:
    workers = len(shares.split(":"))
    result = run(
        data, tmp_path / "run", max_steps=STEPS, precision="fp64", keep="last", workers=str(workers), shares=shares
    )
    assert result["workers"] == workers
    np.testing.assert_allclose(losses(tmp_path / "run"), losses(alone), rtol=1e-9)
    expected = weights(alone)
    for name, found in weights(tmp_path / "run").items():
        assert np.abs(found - expected[name]).max() < 1e-8 * np.abs(expected[name]).max(), name


@pytest.fixture(scope="module")
def two(data: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run of two workers in single precision."""
    out = tmp_path_factory.mktemp("two") / "run"
    run(data, out, max_steps=STEPS, workers=2)
    return out


def test_single_precision_losses_agree(data: Path, two: Path, tmp_path: Path) -> None:
    run(data, tmp_path / "run", max_steps=STEPS, workers=1)
    one = losses(tmp_path / "run")
    assert len(one) == STEPS
    np.testing.assert_allclose(losses(two), one, atol=1e-5)
    assert one[-5:].mean() < one[:5].mean()


def test_workers_share_the_samples_and_count_what_they_send(two: Path) -> None:
    first = events(two)[:5]
    assert len(first) == 5
    for event in first:
        assert event["samples"] == 32
        assert event["bytes_sent"] > 0
        assert len(event["compute_seconds"]) == len(event["wait_seconds"]) == 2
    dense_table = 4 * 8 * 500  # the least that sending the whole embedding would add
    assert max(event["bytes_sent"] for event in first) < 4 * 4000 + dense_table


def test_the_same_run_twice_is_the_same_to_the_bit(data: Path, two: Path, tmp_path: Path) -> None:
    first = json.loads((two / "result.json").read_text("utf-8"))["weights_sha256"]
    assert run(data, tmp_path / "again", max_steps=STEPS, workers=2)["weights_sha256"] == first
    assert run(data, tmp_path / "other", max_steps=STEPS, workers=2, seed=1)["weights_sha256"] != first


def test_training_equals_plain_pytorch(data: Path, tmp_path: Path) -> None:
    """Compared with a plain implementation: dense gradients, mean loss and torch's own optimizer."""
    changes = {"precision": "fp64", "dropout": 0.0, "input_dropout": 0.0, "word_dropout": 0.0}
    changes |= {"pooling": "max", "decay": "none", "warmup_epochs": 0.0, "lr": 0.5, "clip": 0.0, "keep": "last"}
    changes |= {"model": "deep", "optimizer": "sgd", "momentum": 0.0}
    run(data, tmp_path / "run", max_steps=12, workers=2, **changes)
    task = Reviews(data, replace(SMALL, **changes))  # type: ignore[arg-type]
    torch.set_default_dtype(torch.float64)
    try:
        start = task.make_model()
        assert start.deep is not None
        expected = plain_training(task, start.deep, 12)
    finally:
        torch.set_default_dtype(torch.float32)
        task.close()
    np.testing.assert_allclose(losses(tmp_path / "run"), expected["losses"], rtol=1e-9)
    np.testing.assert_allclose(weights(tmp_path / "run")["deep.embedding.weight"], expected["embedding"], rtol=1e-9)


def plain_training(task: Reviews, start: Deep, steps: int) -> dict[str, np.ndarray]:
    embedding = nn.Embedding.from_pretrained(start.embedding.weight.detach().clone(), freeze=False)
    lstm, head = nn.LSTM(8, 8), nn.Linear(8, 1)
    lstm.load_state_dict(start.forwards[0].state_dict())
    head.load_state_dict(start.head.state_dict())
    optimizer = torch.optim.SGD([*embedding.parameters(), *lstm.parameters(), *head.parameters()], lr=0.5)
    seen = []
    for k in range(steps):
        rows = task.order.batch(0, k)
        outputs = []
        for row in rows:  # one review at a time: no padding, no masks
            tokens, _ = task.train.gather(np.array([row]))
            states, _ = lstm(embedding(torch.from_numpy(tokens.astype(np.int64)))[:, None])
            outputs.append(head(states.amax(0))[0, 0])
        truth = torch.from_numpy(task.train.labels[rows].astype(np.float64))
        loss = nn.functional.binary_cross_entropy_with_logits(torch.stack(outputs), truth)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        seen.append(float(loss.detach()))
    return {"losses": np.array(seen), "embedding": embedding.weight.detach().numpy()}
