"""The wide part against sparse matrix products in plain torch."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from tenor.models.batch import Ngrams
from tenor.models.spec import WideSpec
from tenor.models.wide.bag import weighted_sums
from tenor.models.wide.part import Wide

STARTS = torch.tensor([0, 3, 3, 7])  # the second sample has no n-gram
IDS = torch.tensor([4, 0, 2, 2, 5, 1, 0])


def make_ngrams(dtype: torch.dtype = torch.float64) -> Ngrams:
    return Ngrams(IDS, STARTS, torch.linspace(0.1, 0.7, 7, dtype=dtype))


def dense(ngrams: Ngrams, rows: int) -> torch.Tensor:
    matrix = torch.zeros(len(ngrams.starts) - 1, rows, dtype=ngrams.weights.dtype)
    for sample in range(len(matrix)):
        for at in range(int(ngrams.starts[sample]), int(ngrams.starts[sample + 1])):
            matrix[sample, ngrams.ids[at]] += ngrams.weights[at]
    return matrix


@pytest.mark.parametrize("width", [1, 3])
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.bfloat16])
def test_sums_and_gradients_equal_a_matrix_product(width: int, dtype: torch.dtype) -> None:
    """bfloat16 goes the way of other devices, through torch's own function."""
    table = torch.randn(6, width, generator=torch.Generator().manual_seed(0)).to(dtype).requires_grad_()
    ngrams = make_ngrams(torch.float32 if dtype is torch.bfloat16 else dtype)
    weights = torch.arange(1.0, 1.0 + 3 * width).view(3, width)
    found = weighted_sums(table, ngrams)
    (gradient,) = torch.autograd.grad((found * weights.to(found)).sum(), table)
    expected = dense(ngrams, 6).double() @ table.double()
    (plain,) = torch.autograd.grad((expected * weights.double()).sum(), table)
    tolerance = {torch.float64: 1e-12, torch.float32: 1e-5, torch.bfloat16: 0.05}[dtype]
    torch.testing.assert_close(found.double(), expected, rtol=tolerance, atol=tolerance)
    torch.testing.assert_close(gradient.double(), plain.double(), rtol=tolerance, atol=tolerance)


def test_the_samples_of_a_part_of_a_batch() -> None:
    ngrams = make_ngrams()
    part = ngrams.samples(1, 3)
    torch.testing.assert_close(dense(part, 6), dense(ngrams, 6)[1:3])


def test_logits_have_a_bias_and_start_at_zero() -> None:
    part = Wide(WideSpec(8, 2), 3)
    part.start(np.linspace(0.0, 1.0, 256, dtype=np.float32))
    ngrams = make_ngrams(torch.float32)
    assert not part(ngrams).any()
    with torch.no_grad():
        part.bias.copy_(torch.tensor([1.0, -2.0, 0.5]))
        part.ngrams.weight.normal_(generator=torch.Generator().manual_seed(1))
    torch.testing.assert_close(part(ngrams), dense(ngrams, 256) @ part.ngrams.weight + part.bias)


def test_rows_in_focus_give_the_same_logits() -> None:
    part = Wide(WideSpec(8, 2), 1)
    part.start(np.ones(256, np.float32))
    with torch.no_grad():
        part.ngrams.weight.normal_(generator=torch.Generator().manual_seed(1))
    rows = torch.tensor([9, 40, 41, 100, 200, 255])
    ngrams = make_ngrams(torch.float32)
    whole = part(Ngrams(rows[ngrams.ids], ngrams.starts, ngrams.weights))
    part.ngrams.focus(rows)
    torch.testing.assert_close(part(ngrams), whole)
