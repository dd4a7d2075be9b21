"""Early stopping counts the epochs without a better validation score; an equal score is not better."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from helpers.strategies import POINTS

from tenor.errors import Stopped
from tenor.training import loop
from tenor.training.assemble import train_as
from tenor.training.job import TrainingJob
from tenor.world import World


def train(out: Path, scores: list[float], monkeypatch: pytest.MonkeyPatch, **more: Any) -> dict[str, Any]:
    """Train on few large batches with simulated validation scores."""
    monkeypatch.setattr(loop, "_score", lambda valid, epoch: scores[epoch])
    out.mkdir(exist_ok=True)
    settings = replace(POINTS, keep="best", batch_size=15_000, epochs=len(scores), patience=more.get("patience", 2))
    job = TrainingJob("points", str(out), settings, more.get("resume", False))
    return train_as(World(), job, lambda event: None, more.get("signalled", lambda: 0))


@pytest.mark.parametrize(
    ("scores", "epochs", "kept"),
    [
        ([0.5] * 6, 3, 3),  # a model that predicts one class only never gets better
        ([0.5, 0.7, 0.7, 0.7, 0.9, 0.9], 4, 4),
        ([0.5, 0.7, 0.6, 0.65, 0.9, 0.9], 4, 2),
        ([0.5, 0.5, 0.6, 0.6, 0.7, 0.7], 6, 6),  # one equal epoch in between is within the patience of two
        ([0.1, 0.2, 0.3, 0.4, 0.5, 0.6], 6, 6),
    ],
)
def test_equal_scores_end_a_run_and_the_later_of_equal_weights_are_kept(
    scores: list[float], epochs: int, kept: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    found = train(tmp_path / "run", scores, monkeypatch)
    assert (found["epochs"], found["kept_epoch"]) == (epochs, kept)


def test_without_patience_equal_scores_change_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    found = train(tmp_path / "run", [0.5] * 4, monkeypatch, patience=0)
    assert (found["epochs"], found["kept_epoch"]) == (4, 4)


def test_a_resumed_run_remembers_how_long_it_has_waited(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    came = iter([0, 0, 0, 0, 15, *[0] * 100])  # in the first step of the third epoch
    with pytest.raises(Stopped):
        train(tmp_path / "run", [0.5] * 6, monkeypatch, signalled=came.__next__)
    assert train(tmp_path / "run", [0.5] * 6, monkeypatch, resume=True)["epochs"] == 3
