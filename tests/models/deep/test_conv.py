"""The convolutional cell against its definition, one window at a time."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from tenor.models.batch import Batch
from tenor.models.deep.conv import Conv
from tenor.models.deep.part import Deep, initialise
from tenor.models.spec import DeepSpec


def test_outputs_equal_a_loop_over_windows() -> None:
    torch.manual_seed(0)
    cell, inputs = Conv(5, 4, 3).double(), torch.randn(6, 3, 5, dtype=torch.float64)
    (outputs,) = cell(inputs)
    before = torch.zeros(2, 3, 5, dtype=torch.float64)
    steps = torch.cat([before, inputs])
    for t in range(6):
        window = torch.cat([steps[t], steps[t + 1], steps[t + 2]], dim=1)
        torch.testing.assert_close(outputs[t], torch.relu(window @ cell.weight.T + cell.bias))


def test_a_short_review_is_padded_at_its_start() -> None:
    cell, inputs = Conv(3, 2, 3), torch.randn(1, 2, 3)
    torch.testing.assert_close(cell(inputs)[0][0], torch.relu(inputs[0] @ cell.weight[:, 6:].T + cell.bias))


@pytest.mark.parametrize("window", [1, 3, 4])
@pytest.mark.parametrize("time", [1, 2, 3, 9])
def test_the_largest_outputs_and_their_gradients_equal_torch(time: int, window: int) -> None:
    torch.manual_seed(time)
    cell, inputs = Conv(5, 4, window).double(), torch.randn(time, 3, 5, dtype=torch.float64)
    lengths = torch.tensor([time, max(1, time - 2), 1])
    above = torch.randn(3, 4, dtype=torch.float64)

    def gradients(pooled: torch.Tensor) -> tuple[torch.Tensor, ...]:
        return torch.autograd.grad((pooled * above).sum(), (inputs, cell.weight, cell.bias))

    inputs.requires_grad_()
    mask = (torch.arange(time)[:, None] >= lengths)[:, :, None]
    expected = cell(inputs)[0].masked_fill(mask, -torch.inf).amax(0)
    found = cell.largest(inputs, lengths)
    torch.testing.assert_close(found, expected)
    for one, other in zip(gradients(found), gradients(expected), strict=True):
        torch.testing.assert_close(one, other)


def test_a_number_that_is_not_one_stays_visible() -> None:
    cell, inputs = Conv(3, 2, 3), torch.randn(5, 1, 3)
    inputs[1] = torch.nan
    assert cell.largest(inputs, torch.tensor([5])).isnan().all()


def test_features_are_dropped_as_with_the_pooling_of_other_cells() -> None:
    """Half precision takes the general path, on which dropout comes before the pooling."""
    spec = DeepSpec(vocab_size=20, cell="conv", embedding_dim=6, hidden=8, pooling="max", dropout=0.5)
    model = Deep(spec, 1)
    initialise(model, 0)
    _, layer, _ = model.stages()
    torch.manual_seed(0)
    states, lengths = torch.randn(7, 4, 6), torch.tensor([7, 3, 1, 5])
    batch = Batch(states, lengths, np.arange(4, dtype=np.uint64))
    fused = layer.compute(states, batch)
    general = model._drop(model.forwards[0](states)[0], batch, 1, 0.5)
    mask = (torch.arange(7)[:, None] >= lengths)[:, :, None]
    torch.testing.assert_close(fused, general.masked_fill(mask, -torch.inf).amax(0))
    assert (fused == 0).float().mean() > 0.2


def test_a_review_has_the_same_features_alone_and_among_others() -> None:
    torch.manual_seed(0)
    cell, inputs = Conv(16, 32, 7), torch.randn(40, 9, 16)
    lengths = torch.tensor([40, 3, 17, 1, 25, 40, 8, 30, 12])
    together = cell.largest(inputs, lengths)
    for row, length in enumerate(lengths.tolist()):
        assert torch.equal(cell.largest(inputs[:length, row : row + 1], lengths[row : row + 1])[0], together[row])
