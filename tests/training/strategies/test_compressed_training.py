"""Training with compressed gradients, beside training without compression."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from helpers.strategies import POINTS
from helpers.training import SMALL, events, losses, weights
from helpers.workers import spawn_workers

from tenor.errors import UsageError


@pytest.mark.soak
def test_top_k_of_all_numbers_equals_no_compression(data: Path, tmp_path: Path) -> None:
    names = ("task", "hidden", "embedding_dim", "batch_size", "dropout")
    changes: dict[str, Any] = {name: getattr(SMALL, name) for name in names} | {"max_steps": 12, "precision": "fp64"}
    for compress in ("none", "top-k", "bf16"):
        call = {"out": str(tmp_path / compress), "data": str(data), "strategy": "allreduce", "compress": compress}
        share = {"top_k": 1.0} if compress == "top-k" else {}
        spawn_workers(2, "helpers.strategies:train_rank", 120, **share, **call, **changes)
    np.testing.assert_allclose(losses(tmp_path / "top-k"), losses(tmp_path / "none"), rtol=1e-9)
    found, plain = (weights(tmp_path / name)["deep.embedding.weight"] for name in ("top-k", "none"))
    np.testing.assert_allclose(found, plain, rtol=1e-7, atol=1e-10)
    np.testing.assert_allclose(losses(tmp_path / "bf16"), losses(tmp_path / "none"), atol=0.02)
    for plain_step, step in zip(events(tmp_path / "none"), events(tmp_path / "bf16"), strict=True):
        assert step["bytes_sent"] + step["bytes_saved"] == plain_step["bytes_sent"]
        assert step["bytes_sent"] < plain_step["bytes_sent"] / 3  # 2 bytes instead of 8


def test_invalid_shares_are_refused() -> None:
    with pytest.raises(UsageError, match="top_k"):
        replace(POINTS, top_k=0.0)
