"""From token ids to the input of a model."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from tenor.models.classifier import ReviewNetwork
from tenor.models.deep.part import initialise
from tenor.models.inference import Inference, to_probabilities
from tenor.models.rows import shortened
from tenor.models.spec import DeepSpec, ModelSpec, WideSpec

ROWS = [[5, 6, 7, 8, 9, 10, 11], [3], [4, 5, 6, 7, 8], [2, 3, 4, 5, 6, 7]]
TOKENS = np.array([token for row in ROWS for token in row], np.int32)
LENGTHS = np.array([len(row) for row in ROWS], np.int32)


@pytest.mark.parametrize("limit", [1, 2, 5, 6, 100])
def test_long_rows_keep_both_ends(limit: int) -> None:
    tokens, lengths = shortened(TOKENS, LENGTHS, limit)
    head = limit - limit // 2
    expected = [row if len(row) <= limit else row[:head] + row[len(row) - limit // 2 :] for row in ROWS]
    assert lengths.tolist() == [len(row) for row in expected]
    assert tokens.tolist() == [token for row in expected for token in row]


def make_model(parts: str, num_classes: int = 2) -> ReviewNetwork:
    wide = WideSpec(8, 2) if "wide" in parts else None
    deep = DeepSpec(12, embedding_dim=3, hidden=4, length=5) if "deep" in parts else None
    model = ReviewNetwork(ModelSpec(num_classes, wide, deep))
    model.combination.start()
    if model.wide is not None:
        model.wide.start(np.linspace(0.0, 2.0, 256, dtype=np.float32))
        torch.nn.init.normal_(model.wide.ngrams.weight, generator=torch.Generator().manual_seed(2))
    if model.deep is not None:
        initialise(model.deep, 1)
    return model


@pytest.mark.parametrize("num_classes", [2, 3])
@pytest.mark.parametrize("parts", ["wide", "deep", "wide-deep"])
def test_rows_do_not_affect_each_other(parts: str, num_classes: int) -> None:
    inference = Inference(make_model(parts, num_classes))
    together = inference.probabilities(TOKENS, LENGTHS)
    assert together.shape == ((len(ROWS),) if num_classes == 2 else (len(ROWS), num_classes))
    for row, expected in zip(ROWS, together, strict=True):
        alone = inference.probabilities(np.array(row, np.int32), np.array([len(row)], np.int32))
        np.testing.assert_allclose(alone[0], expected, rtol=1e-5)


def test_parts_are_scaled_added_and_shifted() -> None:
    model = make_model("wide-deep")
    model.combination.set(np.array([0.5, 3.0]), np.array([-1.0]))
    logits = Inference(model).logits(TOKENS, LENGTHS)
    alone = [Inference(make_model(part)).logits(TOKENS, LENGTHS)[0] for part in ("wide", "deep")]
    np.testing.assert_allclose(logits, np.stack(alone), rtol=1e-5)
    expected = 1 / (1 + np.exp(-(0.5 * alone[0] + 3.0 * alone[1] - 1.0)))
    np.testing.assert_allclose(to_probabilities(model, logits), expected[:, 0], rtol=1e-5)
