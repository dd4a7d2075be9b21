"""The deep part compared with a plain loop over each sample, without padding."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from torch import Tensor, nn

from tenor.models.batch import Batch
from tenor.models.deep.part import Deep, initialise
from tenor.models.inference import padded
from tenor.models.spec import DeepSpec
from tenor.models.stage import run_stages

LENGTHS = np.array([9, 5, 5, 1], dtype=np.int32)


def make_batch(vocab: int = 30) -> Batch:
    tokens = np.random.default_rng(0).integers(1, vocab, LENGTHS.sum())
    return Batch(padded(tokens, LENGTHS), torch.from_numpy(LENGTHS.astype(np.int64)), np.arange(4, dtype=np.uint64))


def compute(model: Deep, batch: Batch) -> Tensor:
    """(batch, outputs)"""
    return run_stages(model.stages(), batch.inputs, batch)


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


def naive_logits(model: Deep, tokens: Tensor) -> Tensor:
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
    spec = DeepSpec(30, cell, 6, 8, layers, bidirectional, pooling)
    model = Deep(spec, 1 if classes == 2 else classes).double()
    initialise(model, 0)
    batch = make_batch()
    logits = compute(model, batch).detach().reshape(len(batch), -1)
    for sample, length in enumerate(LENGTHS):
        with torch.no_grad():
            expected = naive_logits(model, batch.inputs[:length, sample])
        torch.testing.assert_close(logits[sample], expected, rtol=1e-10, atol=1e-12)


def test_padding_has_no_effect_and_no_gradient() -> None:
    model = Deep(DeepSpec(30, bidirectional=True, hidden=8, embedding_dim=6), 1).double()
    initialise(model, 0)
    batch = make_batch()
    longer = torch.cat([batch.inputs, torch.zeros(4, 4, dtype=torch.int64)])
    wide = Batch(longer, batch.lengths, batch.keys)
    torch.testing.assert_close(compute(model, wide), compute(model, batch), rtol=1e-12, atol=1e-12)
    model.embedding.focus(torch.arange(30))
    compute(model, wide).sum().backward()
    assert model.embedding.leaf is not None and model.embedding.leaf.grad is not None
    assert float(model.embedding.leaf.grad[0].abs().sum()) == 0.0


def test_rows_in_focus_give_the_gradient_of_the_whole_table() -> None:
    model = Deep(DeepSpec(30, hidden=8, embedding_dim=6), 1).double()
    initialise(model, 0)
    batch = make_batch()
    rows, positions = batch.inputs.unique(return_inverse=True)
    model.embedding.focus(rows)
    compute(model, Batch(positions, batch.lengths, batch.keys)).sum().backward()
    assert model.embedding.leaf is not None
    small = model.embedding.leaf.grad
    model.embedding.release()
    model.embedding.weight.requires_grad_()
    compute(model, batch).sum().backward()
    full = model.embedding.weight.grad
    assert full is not None and small is not None
    torch.testing.assert_close(small, full[rows])
    assert float(full.abs().sum()) == pytest.approx(float(small.abs().sum()))


def test_dropout_depends_only_on_the_sample() -> None:
    model = Deep(DeepSpec(30, hidden=8, embedding_dim=6, layers=2, dropout=0.5), 1).double()
    initialise(model, 0)
    model.train()
    batch = make_batch()
    whole = compute(model, batch)
    for sample, length in enumerate(LENGTHS):
        alone = Batch(batch.inputs[:length, [sample]], batch.lengths[[sample]], batch.keys[[sample]])
        torch.testing.assert_close(compute(model, alone)[0], whole[sample], rtol=1e-10, atol=1e-12)
    model.eval()
    assert not torch.allclose(compute(model, batch), whole)
    plain = Deep(DeepSpec(30, hidden=8, embedding_dim=6, layers=2), 1).double()
    plain.load_state_dict(model.state_dict())
    torch.testing.assert_close(compute(model, batch), compute(plain, batch))  # predictions use no dropout


def test_each_layer_has_its_own_masks() -> None:
    """The input of each dropout is all ones here, so its output is its mask."""
    model = Deep(DeepSpec(30, hidden=6, embedding_dim=6, layers=2, dropout=0.5, input_dropout=0.5), 1)
    model.train()
    batch, masks = make_batch(), []
    drop = model._drop

    def note(states: torch.Tensor, batch: Batch, stream: int, share: float) -> torch.Tensor:
        masks.append(drop(torch.ones_like(states), batch, stream, share)[0])
        return states

    model._drop = note  # type: ignore[method-assign]
    compute(model, batch)
    assert len(masks) == 3
    for one, other in ((0, 1), (0, 2), (1, 2)):
        assert not torch.equal(masks[one], masks[other])


def test_the_seed_determines_the_initial_weights() -> None:
    models = [Deep(DeepSpec(30), 1) for _ in range(3)]
    for model, seed in zip(models, (1, 1, 2), strict=True):
        initialise(model, seed)
    one, same, other = (torch.cat([p.flatten() for p in model.parameters()]) for model in models)
    assert torch.equal(one, same)
    assert not torch.equal(one, other)


def test_initial_weights_let_gradients_through() -> None:
    """Orthogonal recurrences, open forget gates (the second quarter of an LSTM's biases), a zero vector for padding."""
    model = Deep(DeepSpec(30, hidden=8, embedding_dim=6), 1)
    initialise(model, 0)
    weights = dict(model.named_parameters())
    assert not weights["embedding.weight"][0].any() and weights["embedding.weight"][1:].all()
    for gate in weights["forwards.0.weight_hh_l0"].split(8):
        torch.testing.assert_close(gate @ gate.T, torch.eye(8), rtol=0.0, atol=1e-5)
    biases = weights["forwards.0.bias_ih_l0"] + weights["forwards.0.bias_hh_l0"]
    assert biases.tolist() == [0.0] * 8 + [1.0] * 8 + [0.0] * 16
