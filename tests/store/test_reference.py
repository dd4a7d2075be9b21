"""The sample of a run's data: what it holds, and what is refused."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from helpers.corpora import make_reviews, write_json_lines
from safetensors.numpy import save

import tenor
from tenor.errors import RunError
from tenor.store.reader import open_split
from tenor.store.reference import LENGTH, NAME, ROWS, Reference, gathered, read_reference, sample, write_reference


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("prepared")
    raw = write_json_lines(folder / "reviews.jsonl", make_reviews(1500, seed=3))
    tenor.prepare([raw], folder / "data", tenor.PrepareSettings(workers=1, valid_share=0.2, test_share=0.2))
    return folder / "data"


def rows_of(tokens: np.ndarray, lengths: np.ndarray) -> set[tuple[int, ...]]:  # type: ignore[type-arg]
    return {tuple(row.tolist()) for row in np.split(tokens, np.cumsum(lengths)[:-1])}


def test_the_sample_comes_from_rows_outside_the_training_split(data: Path) -> None:
    splits = {name: open_split(data, name) for name in ("train", "valid", "test")}
    try:
        found = sample(splits, 200)
        outside = set()
        for name in ("valid", "test"):
            outside |= rows_of(*splits[name].gather(np.arange(len(splits[name]))))
        few = sample({"train": splits["train"], "valid": splits["valid"]}, 200)
    finally:
        for split in splits.values():
            split.close()
    assert found.is_held_out and len(found.lengths) == 200 and rows_of(found.tokens, found.lengths) <= outside
    assert not few.is_held_out  # 300 validation rows are too few


def test_a_sample_is_read_as_written(tmp_path: Path) -> None:
    tokens, lengths = gathered(np.arange(2, 12, dtype=np.int32), np.array([4, 6], np.int32), np.array([1, 0]), 5)
    assert tokens.tolist() == [6, 7, 8, 9, 10, 2, 3, 4, 5] and lengths.tolist() == [5, 4]
    write_reference(tmp_path, Reference(tokens, lengths, np.array([6, 4], np.int32), True))
    found = read_reference(tmp_path, 12)
    assert found is not None and found.is_held_out and found.tokens.tolist() == tokens.tolist()
    assert found.take(np.array([1])).whole_lengths.tolist() == [4]
    assert read_reference(tmp_path / "elsewhere", 12) is None


GOOD = {
    "tokens": np.array([2, 3, 4], np.int32),
    "lengths": np.array([1, 2], np.int32),
    "whole_lengths": np.array([1, 2], np.int32),
    "is_held_out": np.array([1], np.uint8),
}


@pytest.mark.parametrize(
    "changes",
    [
        {"tokens": np.array([2, 3, 50], np.int32)},
        {"tokens": np.array([2, 3, -1], np.int32)},
        {"tokens": np.array([2, 3, 4], np.int64)},
        {"lengths": np.array([1, 3], np.int32)},
        {"lengths": np.array([-1, 4], np.int32)},
        {"whole_lengths": np.array([0, 2], np.int32)},
        {"whole_lengths": np.array([1], np.int32)},
        {"is_held_out": np.array([1, 1], np.uint8)},
        {"more": np.array([1], np.uint8)},
    ],
)
def test_damaged_samples_are_refused(changes: dict[str, np.ndarray], tmp_path: Path) -> None:  # type: ignore[type-arg]
    (tmp_path / NAME).write_bytes(save(GOOD))
    assert read_reference(tmp_path, 10) is not None
    (tmp_path / NAME).write_bytes(save({**GOOD, **changes}))
    with pytest.raises(RunError, match=r"reference\.safetensors"):
        read_reference(tmp_path, 10)
    (tmp_path / NAME).write_bytes(b"not a sample")
    with pytest.raises(RunError, match="not a sample"):
        read_reference(tmp_path, 10)


def test_a_sample_is_no_larger_than_those_of_training(tmp_path: Path) -> None:
    with (tmp_path / NAME).open("wb") as file:
        file.truncate(4 * ROWS * (LENGTH + 3) + (1 << 16))
    with pytest.raises(RunError, match="bytes allowed"):
        read_reference(tmp_path, 10)
