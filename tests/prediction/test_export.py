"""ONNX files: equal to torch, with any batch and length; small ones say what they lose."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from helpers.command import call_tenor, run_tenor
from helpers.corpora import make_reviews, write_json_lines
from helpers.models import WORDS, write_model
from helpers.training import run as train
from typer.testing import CliRunner

import tenor
from tenor.cli import build_app
from tenor.embedding.exchange import write_file
from tenor.embedding.vectors import Vectors
from tenor.errors import UsageError
from tenor.models.classifier import ReviewNetwork
from tenor.models.inference import Inference
from tenor.models.spec import WideSpec, weight_shapes
from tenor.models.weights import read_weights
from tenor.prediction.export import run_onnx
from tenor.runtime.combined import with_unknown

pytest.importorskip("onnxruntime", reason="onnxruntime is not installed")

TEXTS = ["not good film", "", "zzz", "good " * 7 + "bad", *[" ".join(WORDS[n:] + WORDS[:n]) * n for n in range(5)]]


@pytest.mark.parametrize(
    "changes", [{"length": 6}, {"num_classes": 5, "window": 3, "wide": WideSpec(8, 2, 4)}], ids=str
)
def test_an_onnx_file_equals_torch(tmp_path: Path, changes: dict[str, Any]) -> None:

    run = write_model(tmp_path / "run", cell="conv", pooling="max", **changes)
    tenor.export_model(run, tmp_path / "model.onnx")
    model = tenor.load(run)
    tokens, lengths = with_unknown(*model.encoder(TEXTS))
    network = ReviewNetwork(model.parts.spec)
    network.load_state_dict(read_weights(run / "model.safetensors", weight_shapes(model.parts.spec)))
    assert network.wide is not None and model.parts.wide is not None
    network.wide.characters = model.parts.wide.characters
    expected = Inference(network).probabilities(tokens, lengths)
    found = run_onnx((tmp_path / "model.onnx").read_bytes(), tokens, lengths)
    np.testing.assert_allclose(found[:, 1] if expected.ndim == 1 else found, expected, atol=1e-5)


def test_a_small_file_says_what_it_loses(data: Path, run: Path, tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="the cell"):
        tenor.export_model(write_model(tmp_path / "gru", cell="gru"), tmp_path / "m.onnx")
    train_run = tmp_path / "wide"
    train(data, train_run, model="wide", epochs=1, test=False)
    sizes = {}
    for name, options in (("whole", []), ("small", ["--int8"])):
        said = run_tenor(
            "export", train_run, "--format", "onnx", "--out", tmp_path / name, "--data", data, *options, "--json"
        )
        sizes[name] = said.json
    assert sizes["whole"]["largest_difference"] < 1e-5 and sizes["whole"]["accuracy_lost"] == 0
    assert sizes["small"]["bytes"] < 0.5 * sizes["whole"]["bytes"]
    assert abs(sizes["small"]["accuracy_lost"]) < 0.02 and sizes["small"]["checked_rows"] > 100
    words = ("export", run, "--int8", "--out", tmp_path / "x")
    assert "--int8 has no effect" in call_tenor(*words, "--format", "compact").failed(2)


def export(*words: str | Path) -> str:
    """What the command prints, or its error."""
    found = CliRunner().invoke(build_app(["export"]), ["export", *map(str, words)])
    return found.stdout if found.exit_code == 0 else found.stderr


def test_the_format_is_that_of_the_source(tmp_path: Path) -> None:
    run = write_model(tmp_path / "run", cell="conv", pooling="max")
    (tmp_path / "empty").mkdir()
    assert "is a run folder, which has two formats; add --format onnx or compact" in export(
        run, "--out", tmp_path / "x"
    )
    assert "is neither a run folder nor word vectors" in export(tmp_path / "empty", "--out", tmp_path / "x")
    said = export(run, "--out", tmp_path / "model.onnx")  # and it says how to get what is not known
    assert (tmp_path / "model.onnx").stat().st_size > 0
    assert "the accuracy that is lost was not measured; give the run's prepared data with --data DATA" in said
    vectors = Vectors(["good"], np.ones((1, 3), np.float32))
    write_file(tmp_path / "vectors", vectors, "word2vec")  # a file of another program
    export(tmp_path / "vectors", "--out", tmp_path / "v.txt")
    assert (tmp_path / "v.txt").read_text("utf-8").splitlines()[0] == "1 3"


def test_data_without_test_rows(tmp_path: Path) -> None:
    raw, data, train_run = (
        write_json_lines(tmp_path / "r.jsonl", make_reviews(60)),
        tmp_path / "data",
        tmp_path / "wide",
    )
    tenor.prepare(raw, data, workers=1, test_share=0.0)
    train(data, train_run, model="wide", epochs=1, test=False)
    said = export(train_run, "--format", "onnx", "--out", tmp_path / "m.onnx", "--data", data)
    assert f"the accuracy that is lost was not measured, because {data} has no test rows" in said
    assert (tmp_path / "m.onnx").stat().st_size > 0
