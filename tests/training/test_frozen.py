"""Word vectors that stay fixed in the first epochs: compared with plain torch, in several strategies."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from helpers.together import train_together
from helpers.training import SMALL, load_whole, weights
from torch.nn import functional as F  # noqa: N812

import tenor
from tenor.errors import UsageError
from tenor.preparation.tokeniser.vocabulary import Vocabulary
from tenor.training.recipe import DataFacts, complete
from tenor.training.refusals import refuse_without_effect
from tenor.training.tasks.review_batches import WORDS
from tenor.training.tasks.reviews import Reviews

PLAIN: dict[str, Any] = {"optimizer": "sgd", "momentum": 0.0, "decay": "none", "warmup_epochs": 0.0}


@pytest.fixture
def in_doubles() -> Iterator[None]:
    torch.set_default_dtype(torch.float64)
    yield
    torch.set_default_dtype(torch.float32)


def settings_with(data: Path, file: Path, **changes: Any) -> tenor.TrainSettings:
    words = Vocabulary.load(data / "vocab.json").words
    rng = np.random.default_rng(0)
    file.write_text("".join(f"{word} {' '.join(map(str, rng.normal(size=8)))}\n" for word in words))
    return replace(SMALL, embeddings=str(file), freeze_embeddings=1, dropout=0.0, word_dropout=0.0, **changes)


@pytest.mark.usefixtures("in_doubles")
@pytest.mark.parametrize(("strategy", "size"), [("single", 1), ("allreduce", 2), ("model-parallel", 3)])
def test_clipped_steps_equal_those_of_torch(data: Path, tmp_path: Path, strategy: str, size: int) -> None:
    """The limit of 0.05 always acts, so a gradient of the frozen vectors would change every other weight."""
    how = {"model": "deep", "precision": "fp64", "clip": 0.05, "lr": 0.5, "weight_decay": 0.1, **PLAIN}
    settings = settings_with(data, tmp_path / "v", strategy=strategy, **how)
    task = Reviews(data, settings)
    batches = task.order.num_batches
    loops = train_together(task, replace(settings, max_steps=batches + 3), size)
    model = task.make_model().train()
    for step in range(batches + 3):
        is_frozen = step < batches
        vectors = model.deep.embedding.weight.requires_grad_(not is_frozen)
        batch = load_whole(task, *divmod(step, batches))
        model.zero_grad()
        logits = model(replace(batch, inputs=batch.rows[WORDS][batch.inputs]))
        F.binary_cross_entropy_with_logits(logits[0, :, 0], batch.labels.double()).backward()
        moving = [weight for weight in model.parameters() if weight.requires_grad]
        norm = float(torch.cat([weight.grad.flatten() for weight in moving]).norm())
        rows = batch.rows[WORDS]
        with torch.no_grad():
            for weight in moving:
                change = 0.5 * (weight.grad * min(1.0, 0.05 / norm) + 0.1 * weight)
                if weight is vectors:  # only touched rows decay
                    weight.index_add_(0, rows, change[rows], alpha=-1)
                else:
                    weight.sub_(change)
    task.close()
    for loop in loops:
        for name, weight in model.named_parameters():
            np.testing.assert_allclose(
                loop.optimizer.weights[name].numpy(), weight.detach().numpy(), rtol=1e-8, atol=1e-10, err_msg=name
            )


OTHERS = [pytest.param(name, marks=pytest.mark.soak) for name in ("hogwild", "diloco")]


@pytest.mark.parametrize("strategy", ["async", *OTHERS])
def test_vectors_change_only_after_the_frozen_epochs(data: Path, tmp_path: Path, strategy: str) -> None:
    settings = settings_with(data, tmp_path / "v", strategy=strategy, keep="last")
    settings = replace(settings, workers=2)
    task = Reviews(data, settings)
    start, batches = task.make_model().deep.embedding.weight.detach().numpy(), task.order.num_batches
    task.close()
    tenor.train(data, tmp_path / "one", replace(settings, max_steps=batches))
    np.testing.assert_array_equal(weights(tmp_path / "one")["deep.embedding.weight"], start)
    assert weights(tmp_path / "one")["deep.head.weight"].any()
    tenor.train(data, tmp_path / "two", settings)
    assert not np.array_equal(weights(tmp_path / "two")["deep.embedding.weight"], start)


def test_freezing_needs_vectors_to_start_from(data: Path, tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="freeze_embeddings 2 has no effect with embeddings none; use embeddings auto"):
        tenor.train(data, tmp_path / "run", replace(SMALL, freeze_embeddings=2))
    assert not (tmp_path / "run").exists()
    asked = tenor.TrainSettings(freeze_embeddings=2)
    refuse_without_effect(asked, complete(asked, DataFacts(500, 40_000)), {"freeze_embeddings"})  # it learns vectors
