"""Training on the rows of all splits, after a rehearsal that fits and measures the model."""

from __future__ import annotations

import os
from dataclasses import replace
from pathlib import Path

import pytest
from helpers.training import SMALL, events
from safetensors.numpy import load_file

import tenor
from tenor.errors import RunError, UsageError
from tenor.models.classifier import ReviewNetwork
from tenor.models.spec import DeepSpec, ModelSpec
from tenor.models.weights import write_weights
from tenor.store.manifest import Manifest
from tenor.training.tasks.rehearsal import load_combination

SETTINGS = replace(SMALL, model="wide", max_steps=6, all_rows=True, optimise="f1-macro")


def test_the_model_sees_all_rows_and_is_combined_as_rehearsed(data: Path, tmp_path: Path) -> None:
    result = tenor.train(data, tmp_path / "run", SETTINGS).values
    splits = Manifest.load(data).splits
    rehearsal = events(tmp_path / "run/rehearsal", "end")[0]
    assert result["train_rows"] == sum(splits[name].rows for name in ("train", "valid", "test"))
    assert rehearsal["train_rows"] == splits["train"].rows
    assert result["valid"] == result["test"] == {}  # no row is left to measure on
    assert result["rehearsal"]["test"]["accuracy"] == rehearsal["test"]["accuracy"]
    final, first = (load_file(tmp_path / name / "model.safetensors") for name in ("run", "run/rehearsal"))
    for name in ("scales", "shifts", "threshold"):
        assert final[f"combination.{name}"].tolist() == first[f"combination.{name}"].tolist()
    assert first["combination.scales"].tolist() != [1.0]
    assert tenor.load(tmp_path / "run").threshold == pytest.approx(rehearsal["test"]["threshold"])
    again = tenor.train(data, tmp_path / "run", replace(SETTINGS, resume=True)).values
    assert again["weights_sha256"] == result["weights_sha256"]


def test_a_rehearsal_of_a_stranger_is_checked(tmp_path: Path) -> None:
    small = {"deep": DeepSpec(vocab_size=7, embedding_dim=3, hidden=2)}
    model, other = ReviewNetwork(ModelSpec(**small)), ReviewNetwork(ModelSpec(**small, num_classes=3))
    (folder := tmp_path / "rehearsal").mkdir()
    with pytest.raises(RunError, match="does not exist"):
        load_combination(model, tmp_path)
    model.combination.threshold.fill_(0.25)
    write_weights(folder / "model.safetensors", model.state_dict())
    model.combination.threshold.fill_(0.5)
    load_combination(model, tmp_path)
    assert model.combination.threshold.tolist() == [0.25]
    with pytest.raises(RunError, match="has the shape"):
        load_combination(other, tmp_path)
    os.truncate(folder / "model.safetensors", 99)
    with pytest.raises(RunError, match=r"model\.safetensors"):
        load_combination(model, tmp_path)
    folder.rename(tmp_path / "elsewhere")
    folder.symlink_to(tmp_path / "elsewhere")
    with pytest.raises(RunError, match="is a symbolic link"):
        load_combination(model, tmp_path)


def test_what_cannot_be_rehearsed_is_refused(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="all_rows"):
        tenor.train("points", tmp_path / "run", tenor.TrainSettings(task="points", all_rows=True))
    assert not (tmp_path / "run").exists()
