"""The file of scores: written in the order of the rows, and read only if it is what it claims to be."""

from __future__ import annotations

import os
import tracemalloc
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from helpers.strategies import POINTS
from helpers.together import together
from helpers.training import SMALL
from safetensors.numpy import save

from tenor.errors import RunError
from tenor.evaluation.scores import Scores
from tenor.groups import Alone
from tenor.training.runs.row_scores import MAX_BYTES, NAME, read_row_scores, write_row_scores
from tenor.training.tasks.points import Points
from tenor.training.tasks.reviews import Reviews

CHANCES, LABELS = np.array([0.25, 0.75, 1.0], np.float32), np.array([0, 1, 1], np.uint8)


def test_what_was_written_is_read(tmp_path: Path) -> None:
    assert read_row_scores(tmp_path) is None
    for chances in (CHANCES, np.eye(3, 4, dtype=np.float32)):
        scores = Scores(0.25)
        scores.add(chances, LABELS)
        write_row_scores(tmp_path, scores)
        found = read_row_scores(tmp_path)
        assert found is not None and found.threshold == 0.25
        np.testing.assert_array_equal(found.arrays()[0], chances)
        np.testing.assert_array_equal(found.arrays()[1], LABELS)


@pytest.mark.parametrize(
    "tensors",
    [
        {"probabilities": CHANCES},
        {"probabilities": CHANCES, "labels": LABELS, "more": LABELS},
        {"probabilities": CHANCES, "labels": LABELS[:2]},
        {"probabilities": CHANCES.astype(np.float64), "labels": LABELS},
        {"probabilities": CHANCES, "labels": LABELS.astype(np.int64)},
        {"probabilities": np.zeros((3, 1), np.float32), "labels": LABELS},
        {"probabilities": np.zeros((3, 2, 2), np.float32), "labels": LABELS},
        {"probabilities": np.zeros((3, 257), np.float32), "labels": LABELS},
        {"probabilities": np.array([0.5, np.nan, 1.0], np.float32), "labels": LABELS},
        {"probabilities": np.array([0.5, 1.5, 1.0], np.float32), "labels": LABELS},
        {"probabilities": CHANCES, "labels": LABELS, "threshold": np.array([0.5, 0.5], np.float32)},
        {"probabilities": CHANCES, "labels": LABELS, "threshold": np.array([0.5])},
        {"probabilities": CHANCES, "labels": LABELS, "threshold": np.array([np.nan], np.float32)},
    ],
)
def test_other_tensors_are_refused(tmp_path: Path, tensors: dict[str, Any]) -> None:
    (tmp_path / NAME).write_bytes(save(tensors))
    with pytest.raises(RunError, match=NAME):
        read_row_scores(tmp_path)


@pytest.mark.parametrize("content", [b"", b"\xff" * 50, (1 << 40).to_bytes(8, "little"), b"\x02" + b"\0" * 7 + b"[]"])
def test_damaged_files_are_refused(tmp_path: Path, content: bytes) -> None:
    (tmp_path / NAME).write_bytes(content)
    with pytest.raises(RunError, match="is not a file of scores"):
        read_row_scores(tmp_path)


def test_a_sparse_file_is_not_read(tmp_path: Path) -> None:
    (tmp_path / NAME).touch()
    os.truncate(tmp_path / NAME, MAX_BYTES)
    tracemalloc.start()
    try:
        with pytest.raises(RunError, match="is not a file of scores"):
            read_row_scores(tmp_path)
        assert tracemalloc.get_traced_memory()[1] < 1 << 20
    finally:
        tracemalloc.stop()


def test_links_are_refused(tmp_path: Path) -> None:
    (tmp_path / NAME).symlink_to("/dev/zero")
    with pytest.raises(RunError, match="symbolic link"):
        read_row_scores(tmp_path)


@pytest.mark.parametrize("size", [2, 3])
def test_rows_keep_their_order_with_any_number_of_workers(
    data: Path, size: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tenor.training.tasks.reviews.EVALUATION_BATCH", 16)
    for task in (
        Points(POINTS),
        Reviews(data, SMALL),
    ):
        model = task.make_model()
        alone = task.score(model, "test", Alone())
        assert alone is not None
        np.testing.assert_array_equal(alone.arrays()[1], labels_of(task))
        for found in together(size, lambda seat, task=task, model=model: task.score(model, "test", seat)):  # type: ignore[misc]
            assert found is not None
            np.testing.assert_allclose(found.arrays()[0], alone.arrays()[0], atol=1e-6)
            np.testing.assert_array_equal(found.arrays()[1], alone.arrays()[1])
        task.close()


def labels_of(task: Points | Reviews) -> Any:
    return task.splits["test"].labels if isinstance(task, Reviews) else task.splits["test"][1]
