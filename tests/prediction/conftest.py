"""One small trained run, and copies of it whose data had other labels or titles."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from helpers.corpora import make_reviews, write_json_lines
from helpers.training import run as train

import tenor

MakeRun = Callable[..., Path]


@pytest.fixture(scope="session", autouse=True)
def one_thread() -> None:
    """The tensors of tests are so small that several threads would be slower than one."""
    torch.set_num_threads(1)


@pytest.fixture(scope="session")
def data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("prepared")
    raw = write_json_lines(folder / "reviews.jsonl", make_reviews(2000, seed=3))
    tenor.prepare([raw], folder / "data", tenor.PrepareSettings(workers=1, test_share=0.5))
    return folder / "data"


@pytest.fixture(scope="session")
def run(data: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """1 and 2 stars are negative, 4 and 5 positive."""
    out = tmp_path_factory.mktemp("trained") / "run"
    train(data, out, epochs=3, lr=0.02, test=False)
    return out


@pytest.fixture
def make_run(run: Path, tmp_path: Path) -> MakeRun:
    """A copy of the run whose config differs in the given keys."""

    def make(**changes: Any) -> Path:
        out = tmp_path / "copied-run"
        shutil.copytree(run, out)
        config = json.loads((out / "config.json").read_text("utf-8"))
        (out / "config.json").write_text(json.dumps({**config, **changes}), "utf-8")
        return out

    return make
