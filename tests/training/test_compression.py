"""What travels in place of a gradient adds up to it: at once, or over the steps."""

from __future__ import annotations

import threading
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from helpers.strategies import POINTS
from helpers.training import SMALL, events, losses, weights
from helpers.workers import spawn_workers
from torch import Tensor

from tenor.errors import UsageError
from tenor.training.compression import Compression, make_compression


class Pair:
    """A group of two threads."""

    size = 2

    def __init__(self, rank: int, table: list[Any], barrier: threading.Barrier) -> None:
        self.rank, self.table, self.barrier = rank, table, barrier

    def start_sum(self, tensor: Tensor) -> Pair:
        self.table[self.rank] = tensor.clone()
        self.barrier.wait(10)
        tensor.copy_(self.table[0] + self.table[1])
        self.barrier.wait(10)
        return self

    def wait(self) -> None:
        pass


def both(act: Callable[[Pair], None]) -> None:
    table, barrier = [None, None], threading.Barrier(2)
    threads = [threading.Thread(target=act, args=[Pair(rank, table, barrier)]) for rank in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


def summed(name: str, gradients: Tensor, share: float = 0.1, rows: list[Tensor] | None = None) -> tuple[Tensor, Tensor]:
    """Sums of gradients (steps, workers, numbers) as each worker gets them, and what the workers hold back."""
    results = torch.zeros(2, len(gradients), gradients.shape[2])
    memory = torch.zeros(2, 50, 4) if rows else torch.zeros(2, gradients.shape[2])

    def act(group: Pair) -> None:
        compression: Compression = make_compression(name, share, 64)
        compression.remember("w", memory[group.rank])
        for step, gradient in enumerate(gradients):
            flat = gradient[group.rank].clone()
            compression.start(group, "w", flat, rows[step] if rows else None).wait()  # type: ignore[arg-type]
            results[group.rank, step] = flat
        if compression.memory:
            memory[group.rank] = compression.memory["w"]

    both(act)
    return results, memory


GRADIENTS = torch.randn(30, 2, 200, generator=torch.Generator().manual_seed(1)) * 50


@pytest.mark.parametrize(("name", "error"), [("none", 0.0), ("fp16", 2e-3), ("bf16", 2e-2)])
def test_fewer_bits_give_nearly_the_sum(name: str, error: float) -> None:
    results, _ = summed(name, GRADIENTS)
    assert torch.equal(results[0], results[1])
    truth = GRADIENTS.sum(1)
    assert (results[0] - truth).abs().max() <= error * truth.abs().max()


def test_top_k_sends_the_largest_and_loses_nothing_for_good() -> None:
    results, memory = summed("top-k", GRADIENTS)
    assert torch.equal(results[0], results[1])
    assert ((results[0] != 0).sum(1) <= 2 * 20).all()
    first = sum(torch.where(g.abs() >= g.abs().sort().values[-20], g, 0) for g in GRADIENTS[0])
    torch.testing.assert_close(results[0, 0], first)
    torch.testing.assert_close(results[0].sum(0) + memory.sum(0), GRADIENTS.sum((0, 1)), rtol=1e-4, atol=1e-2)


def test_rows_of_a_table_remember_what_was_held_back() -> None:
    generator = torch.Generator().manual_seed(2)
    rows = [torch.randperm(50, generator=generator)[:20].sort().values for _ in range(10)]
    gradients = torch.randn(10, 2, 80, generator=generator)
    results, memory = summed("top-k", gradients, rows=rows)
    sent, truth = torch.zeros(50, 4), torch.zeros(50, 4)
    for step, chosen in enumerate(rows):
        sent.index_add_(0, chosen, results[0, step].view(20, 4))
        truth.index_add_(0, chosen, gradients[step].sum(0).view(20, 4))
    torch.testing.assert_close(sent + memory.sum(0), truth, rtol=1e-4, atol=1e-4)


def test_a_gradient_that_is_not_finite_shows_and_is_not_remembered() -> None:
    spoilt = GRADIENTS[:3].clone()
    spoilt[1, 0, 7] = torch.nan
    results, memory = summed("top-k", spoilt)
    assert results[:, 1].isnan().any() and results[:, 2].isfinite().all() and memory.isfinite().all()


@pytest.mark.soak
def test_reviews_with_every_number_sent_are_as_uncompressed(data: Path, tmp_path: Path) -> None:
    names = ("task", "hidden", "embedding_dim", "batch_size", "dropout")
    changes: dict[str, Any] = {name: getattr(SMALL, name) for name in names} | {"max_steps": 12, "precision": "fp64"}
    for compress in ("none", "top-k", "bf16"):
        call = {"out": str(tmp_path / compress), "data": str(data), "strategy": "allreduce", "compress": compress}
        share = {"top_k": 1.0} if compress == "top-k" else {}
        spawn_workers(2, "helpers.strategies:train_rank", 120, **share, **call, **changes)
    np.testing.assert_allclose(losses(tmp_path / "top-k"), losses(tmp_path / "none"), rtol=1e-9)
    found, plain = (weights(tmp_path / name)["embedding.weight"] for name in ("top-k", "none"))
    np.testing.assert_allclose(found, plain, rtol=1e-7, atol=1e-10)
    np.testing.assert_allclose(losses(tmp_path / "bf16"), losses(tmp_path / "none"), atol=0.02)
    for plain_step, step in zip(events(tmp_path / "none"), events(tmp_path / "bf16"), strict=True):
        assert step["bytes_sent"] + step["bytes_saved"] == plain_step["bytes_sent"]
        assert step["bytes_sent"] < plain_step["bytes_sent"] / 3  # 2 bytes in place of 8


def test_shares_that_make_no_sense_are_refused() -> None:
    with pytest.raises(UsageError, match="--top-k"):
        replace(POINTS, top_k=0.0)
