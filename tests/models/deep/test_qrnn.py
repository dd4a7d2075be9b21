"""The quasi-recurrent cell against its published equations, one word and one review at a time."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from torch import Tensor

from tenor.models.batch import Batch
from tenor.models.deep.part import Deep, initialise
from tenor.models.deep.qrnn import QRNN, CompiledQRNN, plain_qrnn
from tenor.models.inference import padded
from tenor.models.spec import DeepSpec
from tenor.models.stage import run_stages

LENGTHS = np.array([9, 5, 5, 1], dtype=np.int32)


def naive(cell: QRNN, inputs: Tensor) -> Tensor:
    """(time, width) to (time, hidden), from the equations alone."""
    before = torch.zeros_like(inputs[0])
    memory, outputs = 0.0, []
    for now in inputs:
        z, f, o = (cell.weight_before @ before + cell.weight_now @ now + cell.bias).chunk(3)
        z, f, o = torch.tanh(z), torch.sigmoid(f), torch.sigmoid(o)
        memory = f * memory + (1 - f) * z
        outputs.append(o * memory)
        before = now
    return torch.stack(outputs)


@pytest.mark.parametrize("bidirectional", [False, True])
def test_logits_equal_a_naive_loop_over_each_review(bidirectional: bool) -> None:
    spec = DeepSpec(30, "qrnn", 6, 8, layers=2, bidirectional=bidirectional, pooling="max-mean")
    model = Deep(spec, 5).double()
    initialise(model, 0)
    tokens = padded(np.random.default_rng(0).integers(1, 30, LENGTHS.sum()), LENGTHS)
    batch = Batch(tokens, torch.from_numpy(LENGTHS.astype(np.int64)), np.zeros(4, np.uint64))
    logits = run_stages(model.stages(), batch.inputs, batch)
    for sample, length in enumerate(LENGTHS):
        states = model.embedding.weight[tokens[:length, sample]]
        for layer, cell in enumerate(model.forwards):
            outputs = [naive(cell, states)]  # type: ignore[arg-type]
            if bidirectional:
                outputs.append(naive(model.backwards[layer], states.flip(0)).flip(0))  # type: ignore[arg-type]
            states = torch.cat(outputs, dim=1)
        expected = model.head(torch.cat([states.amax(0), states.mean(0)]))
        torch.testing.assert_close(logits[sample], expected, rtol=1e-10, atol=1e-12)


def test_gradients_equal_finite_differences() -> None:
    torch.manual_seed(0)
    cell = QRNN(3, 4).double()
    inputs = torch.randn(5, 2, 3, dtype=torch.float64, requires_grad=True)
    assert torch.autograd.gradcheck(lambda x, *_: cell(x), (inputs, *cell.parameters()))


@pytest.mark.parametrize("time", [1, 7])
def test_gradients_equal_those_of_the_plain_loop(time: int) -> None:
    torch.manual_seed(0)
    cell = QRNN(5, 4).double()
    given = (torch.randn(time, 3, 5, dtype=torch.float64, requires_grad=True), *cell.parameters())
    weights = torch.randn(time, 3, 4, dtype=torch.float64)
    found = []
    for function in (CompiledQRNN.apply, plain_qrnn):
        outputs, memory = function(*given)
        found.append(torch.autograd.grad((outputs * weights).sum() + memory.square().sum(), given))
    for ours, plain in zip(*found, strict=True):
        torch.testing.assert_close(ours, plain, rtol=1e-10, atol=1e-12)


def test_a_second_backward_sees_the_same_gates() -> None:
    cell, inputs = QRNN(3, 2), torch.randn(4, 2, 3, requires_grad=True)
    total = cell(inputs)[0].sum()
    first = torch.autograd.grad(total, inputs, retain_graph=True)[0]
    assert torch.equal(first, torch.autograd.grad(total, inputs)[0])
