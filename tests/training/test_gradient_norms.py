"""What steps log for planning: gradient norms against plain PyTorch, touched rows, padded tokens and loading time."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from helpers.strategies import POINTS
from helpers.together import train_together
from helpers.training import SMALL, load_part, load_whole
from torch import nn
from torch.nn import functional as F  # noqa: N812

from tenor.models.embedding import RowEmbedding
from tenor.training.tasks.points import Points
from tenor.training.tasks.reviews import Reviews

SETTINGS = replace(POINTS, epochs=1, hidden=16, lr=0.0001, precision="fp64", max_steps=4, clip=0.01)


@pytest.fixture(autouse=True)
def in_doubles() -> Iterator[None]:
    torch.set_default_dtype(torch.float64)
    yield
    torch.set_default_dtype(torch.float32)


def norm_of(model: nn.Module, loss: torch.Tensor) -> float:
    model.zero_grad()
    loss.backward()
    return float(torch.sqrt(sum((p.grad**2).sum() for p in model.parameters() if p.grad is not None)))


@pytest.mark.parametrize("shares", ["", "5:2:1"])
def test_norms_of_workers_and_of_the_batch_before_clipping(shares: str) -> None:
    settings = replace(SETTINGS, shares=shares)
    task = Points(settings)
    first = train_together(task, settings, 3)[0].recorder.events[0]  # type: ignore[attr-defined]
    model = task.make_model()
    parts = [
        load_part(task, 0, 0, rank, np.array([float(n) for n in (shares or "1:1:1").split(":")])) for rank in range(3)
    ]
    squares = [norm_of(model, F.cross_entropy(model(part), part.labels)) ** 2 for part in parts]
    whole = load_whole(task, 0, 0)
    assert first["worker_gradient_norm"] == pytest.approx(np.sqrt(np.mean(squares)), rel=1e-9)
    assert first["gradient_norm"] == pytest.approx(
        norm_of(model, F.cross_entropy(model(whole), whole.labels)), rel=1e-9
    )
    assert first["gradient_norm"] > settings.clip


def test_workers_without_samples_do_not_count() -> None:
    settings = replace(SETTINGS, shares="1:0", max_steps=1)
    (event, *_) = train_together(Points(settings), settings, 2)[0].recorder.events  # type: ignore[attr-defined]
    assert event["worker_gradient_norm"] == pytest.approx(event["gradient_norm"])


@pytest.mark.parametrize(
    "changes", [{"strategy": "local-sgd", "sync_every": 2}, {"strategy": "allreduce", "compress": "top-k"}]
)
def test_where_no_step_has_a_common_gradient_no_norm_is_logged(changes: dict[str, Any]) -> None:
    settings = replace(SETTINGS, **changes)
    steps = [e for e in train_together(Points(settings), settings, 2)[0].recorder.events if e["event"] == "step"]  # type: ignore[attr-defined]
    assert steps and all("gradient_norm" not in event for event in steps)
    alone = train_together(Points(SETTINGS), SETTINGS, 1)[0].recorder.events[0]  # type: ignore[attr-defined]
    assert "worker_gradient_norm" not in alone


def test_touched_rows_padded_tokens_and_loading_are_logged(data: Path) -> None:
    settings = replace(SMALL, max_steps=4, strategy="local-sgd", sync_every=2, precision="fp64")
    task = Reviews(data, settings)
    try:
        loop = train_together(task, settings, 2)[0]
        events = [event for event in loop.recorder.events if event["event"] == "step"]  # type: ignore[attr-defined]
        batches = [load_whole(task, 0, k) for k in range(4)]
    finally:
        task.close()
    for place, event in enumerate(events):  # a line stands for two steps
        own = batches[2 * place : 2 * place + 2]
        assert event["rows"] == {name: sum(len(one.rows[name]) for one in own) for name in own[0].rows}
        assert sum(event["padded_tokens"]) <= sum(one.num_padded for one in own)
        assert event["load_seconds"] > 0
    sizes = loop.sizes()
    tables = [name for name, module in loop.model.named_modules() if isinstance(module, RowEmbedding)]
    assert set(sizes["tables"]) == set(tables) and sizes["train_rows"] == task.order.num_rows
    weights = loop.optimizer.weights
    assert sum(one["rows"] * one["row_bytes"] for one in sizes["tables"].values()) + sizes["dense_bytes"] == sum(
        weight.nbytes for weight in weights.values()
    )
