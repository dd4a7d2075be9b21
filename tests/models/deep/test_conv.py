"""The convolutional cell against its definition, one window at a time."""

from __future__ import annotations

import torch

from tenor.models.deep.conv import Conv


def test_outputs_equal_a_loop_over_windows() -> None:
    torch.manual_seed(0)
    cell, inputs = Conv(5, 4).double(), torch.randn(6, 3, 5, dtype=torch.float64)
    (outputs,) = cell(inputs)
    before = torch.zeros(2, 3, 5, dtype=torch.float64)
    steps = torch.cat([before, inputs])
    for t in range(6):
        window = torch.cat([steps[t], steps[t + 1], steps[t + 2]], dim=1)
        torch.testing.assert_close(outputs[t], torch.relu(window @ cell.weight.T + cell.bias))


def test_a_short_review_is_padded_at_its_start() -> None:
    cell, inputs = Conv(3, 2), torch.randn(1, 2, 3)
    torch.testing.assert_close(cell(inputs)[0][0], torch.relu(inputs[0] @ cell.weight[:, 6:].T + cell.bias))
