"""The fitted combination against a slow search with torch, and against what it promises."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from torch.nn import functional as F  # noqa: N812

from tenor.models.combination import Combination, fit_combination


def make_parts(rows: int, outputs: int, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """Two parts of different quality and scale, and labels."""
    rng = np.random.default_rng(seed)
    labels = rng.integers(0, max(2, outputs), rows)
    truth = (2.0 * labels[:, None] - 1.0) if outputs == 1 else np.eye(outputs)[labels] * 2.0
    return np.stack(
        [5.0 * truth + rng.normal(0, 9, truth.shape), 0.3 * truth + rng.normal(0, 0.4, truth.shape)]
    ), labels


def log_loss(logits: np.ndarray, labels: np.ndarray, weights: np.ndarray) -> float:
    given, wanted = torch.from_numpy(logits), torch.from_numpy(labels)
    if logits.shape[1] == 1:
        losses = F.binary_cross_entropy_with_logits(given[:, 0], wanted.double(), reduction="none")
    else:
        losses = F.cross_entropy(given, wanted, reduction="none")
    return float((losses * torch.from_numpy(weights)).sum() / weights.sum())


@pytest.mark.parametrize("outputs", [1, 4])
def test_the_fit_equals_that_of_torch(outputs: int) -> None:
    parts, labels = make_parts(400, outputs)
    weights = np.where(labels == 0, 2.0, 1.0)
    scales, shifts = fit_combination(parts, labels, weights)
    values = torch.cat([torch.full((2,), 0.5), torch.zeros(outputs)]).double().requires_grad_()
    start = values.detach().clone()
    optimizer = torch.optim.LBFGS([values], max_iter=500, tolerance_grad=1e-12, tolerance_change=1e-16)
    given, wanted = torch.from_numpy(parts), torch.from_numpy(labels)

    def loss() -> torch.Tensor:
        optimizer.zero_grad()
        logits = torch.tensordot(values[:2], given, dims=1) + values[2:]
        if outputs == 1:
            each = F.binary_cross_entropy_with_logits(logits[:, 0], wanted.double(), reduction="none")
        else:
            each = F.cross_entropy(logits, wanted, reduction="none")
        total = (each * torch.from_numpy(weights)).sum() / weights.sum()
        total = total + 0.5 / len(labels) * (values - start).square().sum()
        total.backward()
        return total

    optimizer.step(loss)
    np.testing.assert_allclose(np.concatenate([scales, shifts]), values.detach().numpy(), atol=1e-5)


@pytest.mark.parametrize("outputs", [1, 3])
def test_it_is_better_than_each_part(outputs: int) -> None:
    parts, labels = make_parts(2000, outputs)
    weights = np.ones(len(labels))
    scales, shifts = fit_combination(parts, labels, weights)
    both = log_loss(np.tensordot(scales, parts, 1) + shifts, labels, weights)
    for part in parts:
        alone, shift = fit_combination(part[None], labels, weights)
        assert both < log_loss(alone[0] * part + shift, labels, weights) - 0.01


@pytest.mark.parametrize("rows", [1, 3, 50])
def test_few_rows_and_perfect_parts_give_finite_numbers(rows: int) -> None:
    labels = np.arange(rows) % 2
    parts = np.stack([(2.0 * labels - 1.0)[:, None] * 30.0] * 2)
    scales, shifts = fit_combination(parts, labels, np.ones(rows))
    assert np.isfinite([*scales, *shifts]).all() and np.abs([*scales, *shifts]).max() < 10.0


def test_it_starts_as_the_mean_of_the_parts() -> None:
    combination = Combination(2, 3)
    combination.start()
    logits = torch.arange(12.0).view(2, 2, 3)
    torch.testing.assert_close(combination(logits), logits.mean(0))
    combination.set(np.array([2.0, -1.0]), np.array([0.0, 1.0, 2.0]))
    torch.testing.assert_close(combination(logits), 2 * logits[0] - logits[1] + torch.tensor([0.0, 1.0, 2.0]))
