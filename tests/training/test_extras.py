"""The model card, TensorBoard events, comparison of cells, and five classes."""

from __future__ import annotations

import importlib.util
import json
from dataclasses import replace
from pathlib import Path

import pytest
from helpers.corpora import make_reviews, write_json_lines
from helpers.training import SMALL, events, run

import tenor
from tenor.errors import MissingExtra, StoreError, UsageError
from tenor.training.launching.compare import compare
from tenor.training.runs.card import model_card
from tenor.training.runs.tensorboard import scalars
from tenor.training.tasks.base import CardText
from tenor.training.tasks.reviews import Reviews


def test_the_card_has_metrics_and_the_baseline(data: Path, tmp_path: Path) -> None:
    result = run(data, tmp_path / "run", lr=0.01)
    card = (tmp_path / "run" / "README.md").read_text("utf-8")
    for split in ("valid", "test"):
        assert f"{result[split]['accuracy']:.4f}" in card
        assert f"{result[split]['majority_baseline']['accuracy']:.4f}" in card
    assert result["weights_sha256"] in card and "tenor.load(" in card
    assert "adagrad at 1" in card and "adam at 0.01" in card  # of the wide and of the deep part


def test_what_needs_validation_rows_is_refused_without_them(tmp_path: Path) -> None:
    raw = write_json_lines(tmp_path / "reviews.jsonl", make_reviews(60, seed=1))
    tenor.prepare([raw], tmp_path / "data", workers=1, valid_share=0.0)
    for options in ({"optimise": "accuracy"}, {"patience": 2}):
        with pytest.raises(UsageError, match=f"{next(iter(options))} .* has no effect without validation rows"):
            run(tmp_path / "data", tmp_path / "run", model="wide", **options)
    assert not (tmp_path / "run").exists()
    task = Reviews(tmp_path / "data", SMALL)
    assert any("no validation rows calibrate the probabilities" in note for note in task.notes)
    task.close()


def test_a_card_without_measurements_says_why() -> None:
    settings = {"batch_size": 32, "task": "reviews", "model": "wide", "optimizer": "adam", "lr": 0.1, "seed": 0}
    result = {"epochs": 1, "steps": 2, "kept_epoch": 1, "weights_sha256": "5f", "valid": {}, "test": {}}
    card = model_card(CardText("title", "facts", "use"), settings, result)
    assert "was not measured, because its data has neither validation nor test rows. use" in card and "|" not in card


def test_cells_are_compared(data: Path, tmp_path: Path) -> None:
    result = compare(data, tmp_path / "all", replace(SMALL, epochs=1), ["gru", "qrnn"])
    assert [row["cell"] for row in result.rows] == ["gru", "qrnn"]
    for row in result.rows:
        kept = json.loads((tmp_path / "all" / row["cell"] / "result.json").read_text("utf-8"))
        assert (row["test_accuracy"], row["valid_auc"]) == (kept["test"]["accuracy"], kept["valid"]["auc"])
    assert json.loads((tmp_path / "all" / "compare.json").read_text("utf-8")) == result.rows


@pytest.mark.parametrize("cells", [["gru", "gru"], ["gru", "nonsense"], [""]])
def test_a_wrong_comparison_is_refused_before_training(data: Path, tmp_path: Path, cells: list[str]) -> None:
    with pytest.raises(UsageError):
        compare(data, tmp_path / "all", SMALL, cells)
    assert not (tmp_path / "all").exists()


def test_five_classes(tmp_path: Path) -> None:
    """Each class has its own word, so a model that learns must predict nearly all of them."""
    words = ("awful", "poor", "fair", "good", "superb")
    raw = tmp_path / "stars.jsonl"
    with raw.open("w", encoding="utf-8") as file:
        for i in range(1500):
            text = f"number {i} of the things i bought was {words[i % 5]} and that is item {i * 7}"
            file.write(json.dumps({"text": text, "stars": i % 5 + 1}) + "\n")
    tenor.prepare([raw], tmp_path / "data", tenor.PrepareSettings(labels="stars", workers=1))
    result = run(tmp_path / "data", tmp_path / "run", lr=0.03, epochs=6, word_dropout=0.0, keep="last")
    assert len(result["test"]["confusion"]) == 5
    assert result["test"]["accuracy"] > 0.9
    assert result["test"]["majority_baseline"]["accuracy"] < 0.4
    assert result["test"]["auc"] > 0.95
    best = tenor.load(tmp_path / "run").predict(["it was superb", "it was awful"])
    assert len({prediction.label for prediction in best}) == 2
    found = tenor.evaluate(tmp_path / "run", raw)  # without label options, the labels of the run's data are used
    assert found.rows == 1500 and found.accuracy > 0.9
    two = tenor.PrepareSettings(vocab=str(tmp_path / "run"), workers=1)
    tenor.prepare([raw], tmp_path / "two", two)
    with pytest.raises(StoreError, match="other classes"):
        tenor.evaluate(tmp_path / "run", tmp_path / "two")
    with pytest.raises(UsageError, match="another tokeniser"):
        tenor.prepare([raw], tmp_path / "letters", replace(two, clean="letters"))


@pytest.mark.skipif(importlib.util.find_spec("tensorboard") is None, reason="the extra tensorboard is not installed")
@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_tensorboard_holds_the_events(data: Path, tmp_path: Path) -> None:
    from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

    tenor.train(data, tmp_path / "run", replace(SMALL, epochs=1, tensorboard=True))  # its writer is a thread
    board = EventAccumulator(str(tmp_path / "run" / "tensorboard"))
    board.Reload()
    written = [(point.step, point.value) for point in board.Scalars("train/loss")]
    logged = [(event["step"], event["loss"]) for event in events(tmp_path / "run")]
    assert [step for step, _ in written] == [step for step, _ in logged]
    assert [value for _, value in written] == pytest.approx([value for _, value in logged], rel=1e-6)
    assert board.Scalars("valid/accuracy")[0].value > 0


def test_without_the_extra_the_install_command_is_named(
    data: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    with pytest.raises(MissingExtra, match=r"pip install 'tenor\[tensorboard\]'"):
        run(data, tmp_path / "run", tensorboard=True)
    assert not (tmp_path / "run").exists()


def test_a_loss_that_is_not_finite_is_not_written() -> None:
    assert "train/loss" not in scalars({"event": "step", "loss": None, "lr": 0.1, "bytes_sent": 0})
