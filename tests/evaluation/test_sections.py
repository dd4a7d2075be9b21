"""Sections of prepared data: each row is in exactly one of them."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from helpers.corpora import make_reviews, write_json_lines

import tenor
from tenor.evaluation.sections import cut_split
from tenor.store.reader import open_split


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("prepared")
    raw = write_json_lines(folder / "reviews.jsonl", make_reviews(300, seed=3))
    tenor.prepare([raw], folder / "data", tenor.PrepareSettings(workers=1, valid_share=0.4))
    return folder / "data"


@pytest.mark.parametrize("workers", [1, 2])
@pytest.mark.parametrize("batch_rows", [3, 1000])
def test_sections_hold_each_row_once(data: Path, workers: int, batch_rows: int) -> None:
    model: Any = SimpleNamespace(batch_rows=batch_rows)
    found = [rows for section in cut_split(data, "valid", workers) for rows in section.read(model)]
    with open_split(data, "valid") as split:
        assert sorted(np.concatenate([rows.places for rows in found])) == list(range(len(split)))
        for rows in found:
            assert rows.labels.tolist() == split.labels[rows.places].tolist()
