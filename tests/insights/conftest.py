"""One small trained run of wide and deep, a run without a wide part, and rows without any run."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch
from helpers.corpora import write_json_lines
from helpers.training import run as train
from insights.stored import plain_reviews

import tenor


@pytest.fixture(scope="session", autouse=True)
def one_thread() -> None:
    """The tensors of tests are so small that several threads would be slower than one."""
    torch.set_num_threads(1)


@pytest.fixture(scope="session")
def data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("prepared")
    raw = write_json_lines(folder / "reviews.jsonl", plain_reviews(2000, seed=3))
    tenor.prepare([raw], folder / "data", tenor.PrepareSettings(workers=1, valid_share=0.2, test_share=0.2))
    return folder / "data"


@pytest.fixture(scope="session")
def run(data: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("trained") / "run"
    train(data, out, model="wide-deep", ngram_bits=22, epochs=2, lr=0.02, test=False)
    return out


@pytest.fixture(scope="session")
def deep_run(data: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("trained") / "deep"
    train(data, out, model="deep", epochs=2, lr=0.02, test=False)
    return out
