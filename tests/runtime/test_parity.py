"""The runtime gives what torch gives, for every cell and pooling, and loads neither torch nor pandas."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from helpers.models import WORDS, write_model

import tenor
from tenor.models.classifier import ReviewNetwork
from tenor.models.deep.cells import CELLS
from tenor.models.deep.pooling import POOLINGS
from tenor.models.inference import Inference
from tenor.models.spec import POOLING_WIDTHS, DeepSpec, ModelSpec, WideSpec, weight_shapes
from tenor.runtime import convolution
from tenor.runtime.layers import CELLS as RUNTIME_CELLS
from tenor.runtime.read_run import read_run

TEXTS = [
    "not good film",
    "",
    "zzz unknown words",
    "good " * 7 + "bad",
    "Not! a BAD plot? &amp; cafe\u0301 good",
    " ".join(np.random.default_rng(0).choice([*WORDS, "other"], 10_000)),
]


def by_torch(run: Path, texts: list[str]) -> np.ndarray[Any, Any]:
    contents = read_run(run)
    model = ReviewNetwork(contents.spec)
    model.load_state_dict({name: torch.from_numpy(array) for name, array in contents.weights.items()})
    assert model.wide is not None
    model.wide.characters = contents.characters
    found = []
    for text in texts:
        tokens, lengths = contents.encoder([text])
        if not lengths[0]:
            tokens, lengths = np.array([1], np.int32), np.array([1], np.int32)
        chances = Inference(model).probabilities(tokens, lengths)
        found.append([1 - chances[0], chances[0]] if chances.ndim == 1 else chances[0])
    return np.array(found)


MODELS: list[dict[str, Any]] = [
    *({"cell": cell, "pooling": pooling} for cell in CELLS for pooling in ("max", "max-mean")),
    *({"cell": cell, "bidirectional": True, "layers": 2, "pooling": "last"} for cell in CELLS),
    {"cell": "conv", "pooling": "max", "num_classes": 5, "length": 9},
    {"cell": "gru", "pooling": "mean", "num_classes": 3, "length": 9},
    {"cell": "conv", "pooling": "max", "wide": WideSpec(8, 2, 4)},
    {"cell": "conv", "pooling": "max", "wide": WideSpec(8, 2, 2), "num_classes": 3},
]


@pytest.mark.parametrize("changes", MODELS, ids=str)
def test_the_runtime_equals_torch(tmp_path: Path, changes: dict[str, Any]) -> None:
    run = write_model(tmp_path / "run", **changes)
    found = tenor.load(run).predict_proba(TEXTS)
    np.testing.assert_allclose(found, by_torch(run, TEXTS), atol=1e-6)


def test_a_convolution_with_little_room_is_the_same(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    run = write_model(tmp_path / "run", cell="conv", pooling="max")
    expected = tenor.load(run).predict_proba(TEXTS)
    model = tenor.load(run)
    deep: Any = model.parts.deep
    deep._convolution._kept = deep._convolution._kept[:2]  # two words are kept, and the others computed each time
    assert convolution.ROOM > 0
    np.testing.assert_array_equal(model.predict_proba(TEXTS), expected)
    np.testing.assert_array_equal(model.predict_proba(TEXTS[::-1]), expected[::-1])


def test_threads_and_chunks_change_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    model = tenor.load(write_model(tmp_path / "run", cell="conv", pooling="max"))
    texts = [" ".join(WORDS[n % 5 :][: n % 4]) for n in range(50)]
    alone = np.concatenate([model.predict_proba([text]) for text in texts])
    monkeypatch.setattr("tenor.runtime.model.CHUNK", 7)
    for threads in (1, 3):
        model.threads = threads
        np.testing.assert_allclose(model.predict_proba(texts), alone, atol=1e-6)
        tokens, lengths = model.encoder(texts)
        np.testing.assert_allclose(model.score_tokens(tokens, lengths), alone, atol=1e-6)
    assert model.predict_proba([]).shape == (0, 2)


@pytest.mark.parametrize("cell", CELLS)
@pytest.mark.parametrize("bidirectional", [False, True])
def test_the_shapes_are_those_of_torch(cell: str, bidirectional: bool) -> None:
    assert set(RUNTIME_CELLS) == set(CELLS)
    assert {name: pooling.widening for name, pooling in POOLINGS.items()} == POOLING_WIDTHS
    for pooling in POOLINGS:
        deep = DeepSpec(9, cell, 3, 4, 2, bidirectional, pooling)
        for spec in (ModelSpec(2, WideSpec(8, 2), deep), ModelSpec(4, None, deep), ModelSpec(3, WideSpec(8), None)):
            expected = {name: tuple(weight.shape) for name, weight in ReviewNetwork(spec).state_dict().items()}
            assert weight_shapes(spec) == expected


def test_predicting_a_few_texts_loads_neither_torch_nor_numba(tmp_path: Path) -> None:
    run = write_model(tmp_path / "run", cell="conv", pooling="max")
    code = (
        "import json, sys, tenor\n"
        f"model = tenor.load({str(run)!r})\n"
        "model.predict(['good film']); model.explain('good film'); model.contributions(['good film'])\n"
        "print(json.dumps(sorted({'torch', 'numba', 'pandas', 'h5py', 'matplotlib'} & set(sys.modules))))"
    )
    environment = {"PYTHONPATH": ":".join(sys.path)}
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, env=environment)
    assert json.loads(done.stdout) == []
