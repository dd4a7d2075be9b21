"""Small prepared data whose labels a model can learn in a few steps."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch
from helpers.corpora import make_reviews, write_json_lines

import tenor


@pytest.fixture(scope="session")
def data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """1,500 reviews of about 20 words; 1,200 of them to train on."""
    folder = tmp_path_factory.mktemp("prepared")
    raw = write_json_lines(folder / "reviews.jsonl", make_reviews(1500, seed=3))
    tenor.prepare([raw], folder / "data", workers=1)
    return folder / "data"


@pytest.fixture(scope="session", autouse=True)
def one_thread() -> None:
    """The tensors of the tests are small, so threads would mostly wait for each other."""
    torch.set_num_threads(1)
