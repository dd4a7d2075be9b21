"""The classifier against a plain loop over each sample alone, without padding."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from torch import Tensor, nn

from tenor.models.batch import Batch
from tenor.models.classifier import ModelSpec, RecurrentClassifier, initialise
from tenor.models.inference import padded

LENGTHS = np.array([9, 5, 5, 1], dtype=np.int32)


def make_batch(vocab: int = 30) -> Batch:
    tokens = np.random.default_rng(0).integers(1, vocab, LENGTHS.sum())
    return Batch(
        padded(tokens, LENGTHS), torch.from_numpy(LENGTHS.astype(np.int64)), torch.tensor([0, 1, 1, 0]),
        np.arange(4, dtype=np.uint64),
    )  # fmt: skip


def step_by_step(cell: nn.Module, kind: str, inputs: Tensor) -> Tensor:
    """The cell's published equations, one time step after another: (time, width) to (time, hidden)."""
    w_ih, w_hh, b_ih, b_hh = (p.detach() for p in cell.parameters())
    hidden = torch.zeros(w_hh.shape[1], dtype=inputs.dtype)
    memory = torch.zeros_like(hidden)
    outputs = []
    for x in inputs:
        a, b = w_ih @ x + b_ih, w_hh @ hidden + b_hh
        if kind == "rnn":
            hidden = torch.tanh(a + b)
        elif kind == "lstm":
            i, f, g, o = (a + b).chunk(4)
            memory = torch.sigmoid(f) * memory + torch.sigmoid(i) * torch.tanh(g)
            hidden = torch.sigmoid(o) * torch.tanh(memory)
        else:
            (ar, az, an), (br, bz, bn) = a.chunk(3), b.chunk(3)
            new = torch.tanh(an + torch.sigmoid(ar + br) * bn)
            hidden = (1 - torch.sigmoid(az + bz)) * new + torch.sigmoid(az + bz) * hidden
        outputs.append(hidden)
    return torch.stack(outputs)


def naive_logits(model: RecurrentClassifier, tokens: Tensor) -> Tensor:
    """One sample, no padding."""
    spec, states = model.spec, model.embedding.weight[tokens]
    for layer, cell in enumerate(model.forwards):
        outputs = step_by_step(cell, spec.cell, states)
        if spec.bidirectional:
            back = step_by_step(model.backwards[layer], spec.cell, states.flip(0)).flip(0)
            outputs = torch.cat([outputs, back], dim=1)
        states = outputs
    width = spec.hidden
    last = torch.cat([states[-1, :width], states[0, width:]])
    pooled = {
        "max": states.amax(0),
        "mean": states.mean(0),
        "last": last,
        "max-mean": torch.cat([states.amax(0), states.mean(0)]),
    }[spec.pooling]
    return model.head(pooled)


@pytest.mark.parametrize("cell", ["lstm", "gru", "rnn"])
@pytest.mark.parametrize("pooling", ["max", "mean", "last", "max-mean"])
@pytest.mark.parametrize(("layers", "bidirectional", "classes"), [(1, False, 2), (2, True, 5)])
def test_logits_equal_a_naive_loop(cell: str, pooling: str, layers: int, bidirectional: bool, classes: int) -> None:
    spec = ModelSpec(30, classes, cell, 6, 8, layers, bidirectional, pooling)
    model = RecurrentClassifier(spec).double()
    initialise(model, 0)
    batch = make_batch()
    logits = model(batch).detach().reshape(len(batch), -1)
    for sample, length in enumerate(LENGTHS):
        with torch.no_grad():
            expected = naive_logits(model, batch.tokens[:length, sample])
        torch.testing.assert_close(logits[sample], expected, rtol=1e-10, atol=1e-12)


def test_padding_has_no_effect_and_no_gradient() -> None:
    model = RecurrentClassifier(ModelSpec(30, bidirectional=True, hidden=8, embedding_dim=6)).double()
    initialise(model, 0)
    batch = make_batch()
    longer = torch.cat([batch.tokens, torch.zeros(4, 4, dtype=torch.int64)])
    wide = Batch(longer, batch.lengths, batch.labels, batch.keys)
    torch.testing.assert_close(model(wide), model(batch), rtol=1e-12, atol=1e-12)
    model.embedding.focus(torch.arange(30))
    model(wide).sum().backward()
    assert model.embedding.leaf is not None and model.embedding.leaf.grad is not None
    assert float(model.embedding.leaf.grad[0].abs().sum()) == 0.0


def test_rows_in_focus_give_the_gradient_of_the_whole_table() -> None:
    model = RecurrentClassifier(ModelSpec(30, hidden=8, embedding_dim=6)).double()
    initialise(model, 0)
    batch = make_batch()
    rows, positions = batch.tokens.unique(return_inverse=True)
    model.embedding.focus(rows)
    model(Batch(positions, batch.lengths, batch.labels, batch.keys)).sum().backward()
    assert model.embedding.leaf is not None
    small = model.embedding.leaf.grad
    model.embedding.release()
    model.embedding.weight.requires_grad_()
    model(batch).sum().backward()
    full = model.embedding.weight.grad
    assert full is not None and small is not None
    torch.testing.assert_close(small, full[rows])
    assert float(full.abs().sum()) == pytest.approx(float(small.abs().sum()))


def test_dropout_belongs_to_the_sample() -> None:
    model = RecurrentClassifier(ModelSpec(30, hidden=8, embedding_dim=6, layers=2, dropout=0.5)).double()
    initialise(model, 0)
    model.train()
    batch = make_batch()
    whole = model(batch)
    for sample, length in enumerate(LENGTHS):
        alone = Batch(
            batch.tokens[:length, [sample]], batch.lengths[[sample]], batch.labels[[sample]], batch.keys[[sample]]
        )
        torch.testing.assert_close(model(alone)[0], whole[sample], rtol=1e-10, atol=1e-12)
    model.eval()
    assert not torch.allclose(model(batch), whole)


def test_first_weights_are_fixed_by_the_seed() -> None:
    models = [RecurrentClassifier(ModelSpec(30)) for _ in range(3)]
    for model, seed in zip(models, (1, 1, 2), strict=True):
        initialise(model, seed)
    one, same, other = (torch.cat([p.flatten() for p in model.parameters()]) for model in models)
    assert torch.equal(one, same)
    assert not torch.equal(one, other)
