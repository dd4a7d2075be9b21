"""Skip-gram in torch beside the definition, written as plain loops."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch

from tenor.models.batch import Batch
from tenor.models.skipgram import NONE, SkipGram, initialise_skipgram, window_loss

# columns are samples: the word, two noise words (one equals the word of the first sample), three neighbours
IDS = torch.tensor([[3, 0, 1], [3, 2, 4], [1, 4, 4], [0, 1, 2], [2, NONE, 2], [NONE, NONE, 5]])


def make() -> tuple[SkipGram, Batch]:
    model = SkipGram(6, 4, 2)
    generator = torch.Generator().manual_seed(0)
    with torch.no_grad():
        for table in (model.inputs, model.outputs):
            table.weight.normal_(generator=generator).requires_grad_()
    return model, Batch(IDS, torch.full((3,), 6), np.zeros(3, np.uint64))


def test_the_loss_and_its_gradient_follow_the_definition() -> None:
    model, batch = make()
    near, far = (table.weight.detach().double().numpy() for table in (model.inputs, model.outputs))
    expected, moved_near, moved_far = np.zeros(3), np.zeros_like(near), np.zeros_like(far)
    for sample, (word, first, second, *neighbours) in enumerate(IDS.T.tolist()):
        for neighbour in neighbours:
            if neighbour == NONE:
                continue
            for other, label in ((word, 1.0), (first, 0.0), (second, 0.0)):
                if label == 0.0 and other == word:
                    continue
                chance = 1.0 / (1.0 + math.exp(-near[neighbour] @ far[other]))
                expected[sample] -= math.log(chance if label else 1.0 - chance)
                moved_near[neighbour] += (chance - label) * far[other]
                moved_far[other] += (chance - label) * near[neighbour]
    losses = window_loss(model(batch), torch.zeros(3, dtype=torch.int64))
    losses.sum().backward()
    np.testing.assert_allclose(losses.detach().numpy(), expected, rtol=1e-5)
    np.testing.assert_allclose(model.inputs.weight.grad, moved_near, atol=1e-5)
    np.testing.assert_allclose(model.outputs.weight.grad, moved_far, atol=1e-5)


def test_stages_give_the_shapes_that_they_announce() -> None:
    model, batch = make()
    states = batch.inputs
    for stage in model.stages():
        states = stage.compute(states, batch)
        assert tuple(states.shape) == stage.shape(batch)
    torch.testing.assert_close(states, model(batch))


def test_first_vectors_are_small_and_depend_on_the_seed() -> None:
    models = [SkipGram(50, 10, 2) for _ in range(3)]
    for model, seed in zip(models, (1, 1, 2), strict=True):
        initialise_skipgram(model, seed)
    assert torch.equal(models[0].inputs.weight, models[1].inputs.weight)
    assert not torch.equal(models[0].inputs.weight, models[2].inputs.weight)
    assert 0.04 < float(models[0].inputs.weight.abs().max()) <= 0.05
    assert float(models[0].outputs.weight.abs().max()) == pytest.approx(0.0)
