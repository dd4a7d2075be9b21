"""Training on the rows of all splits, after a rehearsal that fits and measures the model."""

from __future__ import annotations

import os
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from helpers.training import SMALL, events
from safetensors.numpy import load_file

import tenor
from tenor.errors import RunError, UsageError
from tenor.models.classifier import ReviewNetwork
from tenor.models.deep.part import initialise
from tenor.models.spec import DeepSpec, ModelSpec
from tenor.models.weights import write_weights
from tenor.settings import CHOSEN
from tenor.store.manifest import Manifest
from tenor.training import recipe
from tenor.training.job import TrainingJob
from tenor.training.launching import launch
from tenor.training.tasks.rehearsal import load_combination
from tenor.training.tasks.reviews import Reviews

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
    card, page = (tmp_path / "run/README.md").read_text("utf-8"), tenor.report(tmp_path / "run").read_text("utf-8")
    assert "`rehearsal/README.md` has" in card and "adagrad at 1" in card and "adam" not in card
    assert "run/rehearsal</code>" in page and "not been evaluated" not in page
    assert f"{rehearsal['test']['accuracy']:.4f}" in (tmp_path / "run/rehearsal/README.md").read_text("utf-8")


def test_both_trainings_share_the_time_and_train_the_same_model(
    data: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The rehearsal alone, with fewer rows, would be a smaller preset's."""
    rows = sum(part.rows for part in Manifest.load(data).splits.values())
    monkeypatch.setattr(recipe, "choose_preset", lambda _, facts, *rest: "default" if facts.rows == rows else "fast")
    trained: list[dict[str, Any]] = []

    def supervise(job: TrainingJob, *_: object) -> dict[str, Any]:
        trained.append(vars(job.settings))
        return {"valid": {}, "test": {}, "seconds": 1.0, "weights_sha256": ""}

    monkeypatch.setattr(launch, "_supervise", supervise)
    settings = replace(SETTINGS, preset=CHOSEN, epochs=CHOSEN, wide_lr=CHOSEN, max_seconds=600.0)
    tenor.train(data, tmp_path / "run", settings)
    first, final = trained
    assert final["preset"] == "default" and (final["max_seconds"], first["max_seconds"]) == (600.0, 300.0)
    same = final.keys() - {"all_rows", "max_seconds"}
    assert {name: final[name] for name in same} == {name: first[name] for name in same}


def test_the_rehearsal_counts_towards_the_time_limit(data: Path, tmp_path: Path) -> None:
    (tmp_path / "rehearsal").mkdir()
    (tmp_path / "rehearsal/result.json").write_text('{"seconds": 2.5, "vector_seconds": 1, "steps": 9}')
    task = Reviews(data, replace(SETTINGS, max_seconds=60.0), tmp_path)
    assert task.seconds_before == 3.5
    task.close()


def test_a_rehearsal_of_a_stranger_is_checked(tmp_path: Path) -> None:
    small = {"deep": DeepSpec(vocab_size=7, embedding_dim=3, hidden=2)}
    model, other = ReviewNetwork(ModelSpec(**small)), ReviewNetwork(ModelSpec(**small, num_classes=3))
    assert model.deep is not None
    initialise(model.deep, seed=1)
    model.combination.start()
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
