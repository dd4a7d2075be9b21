"""The maximum over time compared with torch's own operations."""

from __future__ import annotations

import pytest
import torch

from tenor.models.deep.maxpool import max_over_time


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("shape", [(1, 1, 1), (7, 4, 5), (30, 3, 17)])
def test_values_and_gradients_equal_torch(dtype: torch.dtype, shape: tuple[int, int, int]) -> None:
    torch.manual_seed(0)
    states = torch.randn(shape, dtype=dtype, requires_grad=True)
    lengths = torch.randint(1, shape[0] + 1, (shape[1],))
    above = torch.randn(shape[1:], dtype=dtype)
    padding = (torch.arange(shape[0])[:, None] >= lengths)[:, :, None]
    expected = states.masked_fill(padding, -torch.inf).amax(0)
    found = max_over_time(states, lengths)
    assert torch.equal(found, expected)
    assert torch.equal(*(torch.autograd.grad(pooled, states, above)[0] for pooled in (found, expected)))
    with torch.no_grad():
        assert torch.equal(max_over_time(states, lengths), expected)


@pytest.mark.parametrize("at", [0, 2, 4])
def test_nan_is_kept(at: int) -> None:
    states = torch.zeros(5, 1, 1)
    states[at] = torch.nan
    assert torch.isnan(max_over_time(states.requires_grad_(), torch.tensor([5])))


def test_padding_is_ignored_without_gradients() -> None:
    states, lengths = torch.randn(6, 3, 4, generator=torch.Generator().manual_seed(0)), torch.tensor([6, 1, 3])
    states[1:, 1], states[3:, 2] = 9.0, 9.0  # padding, larger than everything else
    expected = torch.stack([states[:length, row].amax(0) for row, length in enumerate(lengths.tolist())])
    assert torch.equal(max_over_time(states, lengths), expected)
