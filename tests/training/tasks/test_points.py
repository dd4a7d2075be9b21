"""Points on spirals: the best accuracy follows from the densities, and a run comes near it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from helpers.command import call_tenor
from helpers.training import losses, run, weights

import tenor
from tenor.errors import RunError, UsageError
from tenor.training.tasks.spirals import NOISE, bayes_accuracy, densities, make_points

POINTS = {"task": "points", "hidden": 64, "batch_size": 256, "lr": 0.02, "keep": "last"}


def test_the_best_accuracy_is_reached_by_the_densities_on_new_points() -> None:
    points, labels = make_points(60_000, seed=7)
    found = np.mean(densities(points.astype(np.float64), 120).argmax(1) == labels)
    assert 0.96 < bayes_accuracy() < 0.98
    assert found == pytest.approx(bayes_accuracy(), abs=4 * np.sqrt(0.97 * 0.03 / 60_000))


def test_densities_match_the_points() -> None:
    """Densities compared with counts of points in small discs."""
    points, labels = make_points(100_000, seed=1)
    centres = points[:40].astype(np.float64)
    radius = NOISE / 4
    for label in range(4):
        own = points[labels == label]
        near = (((own[None] - centres[:, None]) ** 2).sum(2) < radius**2).sum(1)
        expected = densities(centres)[:, label] * np.pi * radius**2 * len(own)
        assert np.all(np.abs(near - expected) < 6 * np.sqrt(expected + 1))


def test_points_are_seeded_and_balanced() -> None:
    points, labels = make_points(4000, seed=3)
    again, _ = make_points(4000, seed=3)
    other, _ = make_points(4000, seed=4)
    np.testing.assert_array_equal(points, again)
    assert not np.allclose(points, other)
    assert np.bincount(labels).tolist() == [1000] * 4


@pytest.fixture(scope="module")
def trained(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, dict[str, Any]]:
    out = tmp_path_factory.mktemp("points") / "run"
    return out, run(Path("points"), out, epochs=12, **POINTS)


def test_a_run_comes_near_the_best(trained: tuple[Path, dict[str, Any]]) -> None:
    out, result = trained
    assert result["bayes_accuracy"] == bayes_accuracy()
    assert result["bayes_accuracy"] - 0.02 < result["test"]["accuracy"]
    assert (result["valid"]["rows"], result["test"]["rows"]) == (4000, 6000)
    assert json.loads((out / "config.json").read_text())["bayes_accuracy"] == bayes_accuracy()
    assert not (out / "vocab.json").exists()
    assert "spirals" in (out / "README.md").read_text()


def test_a_report_is_drawn(trained: tuple[Path, dict[str, Any]], tmp_path: Path) -> None:
    page = tenor.report(trained[0], tmp_path / "report.html").read_text()
    assert "test points are classified correctly" in page and "spiral 4" in page


def test_text_cannot_be_predicted(trained: tuple[Path, dict[str, Any]]) -> None:
    for call in (lambda: tenor.load(trained[0]), lambda: tenor.evaluate(trained[0], "data")):
        with pytest.raises(RunError, match="task 'points'"):
            call()


def test_two_workers_make_the_same_update(tmp_path: Path) -> None:
    for workers in (1, 2):
        run(Path("points"), tmp_path / str(workers), max_steps=30, precision="fp64", workers=str(workers), **POINTS)
    np.testing.assert_allclose(losses(tmp_path / "2"), losses(tmp_path / "1"), rtol=1e-9)
    expected = weights(tmp_path / "1")
    for name, found in weights(tmp_path / "2").items():
        np.testing.assert_allclose(found, expected[name], rtol=1e-7, atol=1e-10)


def test_a_folder_is_not_taken_for_points(tmp_path: Path) -> None:
    error = call_tenor("train", tmp_path, "--task", "points", "--out", tmp_path / "run").failed(2)
    assert "tenor train points --task points" in error
    with pytest.raises(UsageError, match="compare"):
        from tenor.training.launching.compare import compare

        compare("points", tmp_path / "runs", tenor.TrainSettings(task="points"), ["lstm"])
