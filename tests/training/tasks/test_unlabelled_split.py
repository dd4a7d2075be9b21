"""Training and evaluation ignore the split `unlabelled`."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import torch
from helpers.corpora import make_reviews, write_json_lines
from helpers.training import SMALL, load_whole, run

import tenor
from tenor.errors import TrainingError, UsageError
from tenor.training.tasks.reviews import Reviews


def _write_unlabelled(path: Path) -> Path:
    path.write_text("".join(json.dumps({"text": f"the plot of scene n{n}"}) + "\n" for n in range(50)))
    return path


@pytest.fixture(scope="module")
def pair(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """The same labelled rows without and with unlabelled ones, and the same vocabulary."""
    folder = tmp_path_factory.mktemp("pair")
    raw, more = write_json_lines(folder / "r.jsonl", make_reviews(80)), _write_unlabelled(folder / "u.jsonl")
    tenor.prepare([raw], folder / "without", tenor.PrepareSettings(workers=1))
    same_words = tenor.PrepareSettings(workers=1, unlabelled=True, vocab=str(folder / "without"))
    assert tenor.prepare([raw, more], folder / "with", same_words).splits["unlabelled"]["rows"] == 50
    return folder / "without", folder / "with"


def test_batches_are_the_same_with_and_without_unlabelled_rows(pair: tuple[Path, Path]) -> None:
    tasks = [Reviews(data, SMALL) for data in pair]
    try:
        assert list(tasks[1].splits) == ["train", "valid", "test"]
        assert tasks[0].order.num_batches == tasks[1].order.num_batches > 1
        for k in range(tasks[0].order.num_batches):
            first, second = (load_whole(task, 0, k) for task in tasks)
            assert torch.equal(first.inputs, second.inputs) and torch.equal(first.labels, second.labels)
    finally:
        for task in tasks:
            task.close()


def test_metrics_are_the_same_with_and_without_unlabelled_rows(pair: tuple[Path, Path], tmp_path: Path) -> None:
    result = run(pair[1], tmp_path / "run", epochs=1)
    found = [tenor.evaluate(tmp_path / "run", data) for data in pair]
    assert found[0] == found[1] and found[0].accuracy == result["test"]["accuracy"]


def test_data_without_labels_is_refused(tmp_path: Path) -> None:
    more = _write_unlabelled(tmp_path / "u.jsonl")
    tenor.prepare([more], tmp_path / "data", tenor.PrepareSettings(workers=1, unlabelled=True))
    with pytest.raises(TrainingError, match="no training row has a label"):
        Reviews(tmp_path / "data", SMALL)


def test_the_split_cannot_be_evaluated() -> None:
    with pytest.raises(UsageError, match=r"^split unlabelled has no labels .*; choose one of train, valid, test$"):
        tenor.EvaluateSettings(split="unlabelled")
