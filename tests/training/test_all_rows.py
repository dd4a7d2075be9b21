"""Training on the rows of all splits, after a rehearsal that fits and measures the model."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from helpers.training import SMALL, events
from safetensors.numpy import load_file

import tenor
from tenor.errors import UsageError
from tenor.store.manifest import Manifest

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


def test_what_cannot_be_rehearsed_is_refused(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="all_rows"):
        tenor.train("points", tmp_path / "run", tenor.TrainSettings(task="points", all_rows=True))
    assert not (tmp_path / "run").exists()
