"""The runtime and ONNX files equal torch on 1,000 real reviews, an empty one and one of 10,000 words included."""

from __future__ import annotations

import collections
import csv
import itertools
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from helpers.models import change_config, change_weights, write_model

import tenor
from tenor.bench.demo_reviews import find_demo_reviews
from tenor.errors import MissingExtra
from tenor.models.classifier import ReviewNetwork
from tenor.models.deep.cells import CELLS
from tenor.models.inference import Inference
from tenor.models.spec import WideSpec
from tenor.prediction.export import run_onnx
from tenor.runtime.combined import with_unknown
from tenor.runtime.read_run import read_run

SIZES = {"embedding_dim": 12, "hidden": 16, "length": 60, "wide": WideSpec(16, 3)}


@pytest.fixture(scope="module")
def reviews() -> list[str]:
    try:
        file = find_demo_reviews()
    except MissingExtra as error:
        pytest.skip(error.what)
    with file.open(newline="", encoding="utf-8") as stream:
        texts = [row["text"] for row in itertools.islice(csv.DictReader(stream), 0, 33_000, 33)][:998]
    return [*texts, "", " ".join(" ".join(texts).split()[:10_000])]


@pytest.fixture(scope="module")
def words(reviews: list[str]) -> list[str]:
    counts = collections.Counter(word for text in reviews for word in text.lower().split() if word.isalpha())
    return [word for word, _ in counts.most_common(1500)]


def by_torch(run: Path, tokens: np.ndarray[Any, Any], lengths: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    contents = read_run(run)
    model = ReviewNetwork(contents.spec)
    model.load_state_dict({name: torch.from_numpy(array) for name, array in contents.weights.items()})
    if model.wide is not None:
        model.wide.characters = contents.characters
    found = Inference(model).probabilities(tokens, lengths)
    return np.stack([1 - found, found], axis=1) if found.ndim == 1 else found


MODELS: list[dict[str, Any]] = [
    {"parts": "wide"},
    {"parts": "wide", "num_classes": 5},
    {"parts": "deep", "cell": "conv", "pooling": "max"},
    {"cell": "conv", "pooling": "max"},
    {"parts": "wide", "wide": WideSpec(16, 3, 5)},
    *({"cell": cell, "bidirectional": cell != "conv"} for cell in CELLS),
]


@pytest.mark.parametrize("changes", MODELS, ids=str)
def test_real_reviews(tmp_path: Path, reviews: list[str], words: list[str], changes: dict[str, Any]) -> None:
    run = write_model(tmp_path / "run", words=words, **{**SIZES, **changes})
    change_config(run, max_length=20_000)
    if changes.get("parts", "wide-deep") == "wide-deep":
        change_weights(run, combination__scales=torch.tensor([0.4, 9.0]))  # so that a mistake in either part shows
    model = tenor.load(run)
    tokens, lengths = with_unknown(*model.encoder(reviews))
    assert len(reviews) == 1000 and lengths.max() > 5000 and (tokens >= 2).mean() > 0.5
    expected = by_torch(run, tokens, lengths)
    found = model.predict_proba(reviews)
    assert expected[:, 0].std() > 0.01
    np.testing.assert_allclose(found, expected, atol=1e-5)
    if model.parts.deep is None or model.parts.deep.is_convolution:
        pytest.importorskip("onnxruntime", reason="onnxruntime is not installed")
        tenor.export_model(run, tmp_path / "model.onnx")
        made = (tmp_path / "model.onnx").read_bytes()
        few = [*range(0, 998, 9), 998]
        ends = np.cumsum(lengths)
        some = np.concatenate([tokens[ends[row] - lengths[row] : ends[row]] for row in few])
        np.testing.assert_allclose(run_onnx(made, some, lengths[few]), expected[few], atol=1e-5)
        last = run_onnx(made, tokens[ends[998] :], lengths[999:])
        np.testing.assert_allclose(last, expected[999:], atol=1e-5)
