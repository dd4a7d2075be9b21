"""Compressed gradients add up to the true ones: at once, or over several steps."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import Tensor

from tenor.groups.compression import Compression, make_compression


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
    """The sums of gradients (steps, workers, numbers) on each worker, and the numbers that the workers hold back."""
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
def test_sums_in_16_bits_are_close(name: str, error: float) -> None:
    results, _ = summed(name, GRADIENTS)
    assert torch.equal(results[0], results[1])
    truth = GRADIENTS.sum(1)
    assert (results[0] - truth).abs().max() <= error * truth.abs().max()


def test_bf16_keeps_the_range_of_fp32() -> None:
    """Numbers far outside the range of fp16 arrive with the 8-bit precision of bf16."""
    gradients = torch.tensor([[[1e30, -1e-30, 1.0], [1e30, -1e-30, 1.0]]])
    results, _ = summed("bf16", gradients)
    torch.testing.assert_close(results[0], gradients.sum(1), rtol=2**-7, atol=0.0)


def test_fp16_has_more_digits_than_bf16() -> None:
    results, _ = summed("fp16", torch.full((1, 2, 3), 64 * (1 + 2**-10)))
    assert torch.equal(results[0], torch.full((1, 3), 128 * (1 + 2**-10)))


def test_top_k_sends_the_largest_and_holds_back_the_rest() -> None:
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


def test_a_gradient_that_is_not_finite_arrives_and_is_not_held_back() -> None:
    spoilt = GRADIENTS[:3].clone()
    spoilt[1, 0, 7] = torch.nan
    for spoiled in (spoilt, spoilt.index_fill(0, torch.tensor([1]), torch.nan)):  # one number, or more than are sent
        results, memory = summed("top-k", spoiled)
        assert results[:, 1].isnan().any() and results[:, 2].isfinite().all() and memory.isfinite().all()
