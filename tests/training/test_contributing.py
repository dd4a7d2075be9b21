"""The worked examples of docs/contributing, followed to the letter in a copy of the package."""

from __future__ import annotations

import re
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from helpers.command import run_tenor
from helpers.processes import SOURCE
from helpers.together import train_together
from helpers.training import losses

from tenor.training.recipe import complete
from tenor.training.settings import TrainSettings
from tenor.training.tasks.points import Points

PAGES = SOURCE.parent / "docs" / "contributing"
_FILE = re.compile(r"^`src/(tenor/[\w/]+\.py)`:\n\n```python\n(.*?)^```", re.DOTALL | re.MULTILINE)
_ENTRY = re.compile(r"in `(\w+)` of `src/(tenor/[\w/]+\.py)`:\n\n```python\n(.*?)^```", re.DOTALL | re.MULTILINE)


def follow(page: str, folder: Path) -> dict[str, str]:
    """Copy the package, add the page's file and its line; the environment in which that copy runs."""
    text = (PAGES / page).read_text("utf-8")
    ((name, code),) = _FILE.findall(text)
    ((table, module, entry),) = _ENTRY.findall(text)
    assert entry.count("\n") == 1, "an entry is one line"
    shutil.copytree(SOURCE / "tenor", folder / "tenor")
    assert not (folder / name).exists()
    (folder / name).write_text(code, "utf-8")
    listed = (folder / module).read_text("utf-8")
    head = f"{table} = {{\n"
    assert listed.count(head) == 1
    (folder / module).write_text(listed.replace(head, head + entry), "utf-8")
    return {"PYTHONPATH": str(folder)}


@pytest.mark.parametrize("page", ["new-strategy.md", "new-cell.md"])
def test_every_page_has_one_file_and_one_line(page: str, tmp_path: Path) -> None:
    follow(page, tmp_path)


def losses_of_allreduce() -> list[float]:
    """The same training with `allreduce`, whose two workers are threads of this process."""
    same: dict[str, Any] = {"optimizer": "sgd", "momentum": 0.0, "clip": 0.0, "lr": 0.3, "hidden": 16, "shares": "3:1"}
    same |= {"workers": 2, "threads": 1, "batch_size": 256, "max_steps": 30, "precision": "fp64"}
    settings = complete(TrainSettings(task="points", strategy="allreduce", **same), None)
    torch.set_default_dtype(torch.float64)
    try:
        loop = train_together(Points(settings), settings, 2)[0]
    finally:
        torch.set_default_dtype(torch.float32)
    steps = [event for event in loop.recorder.events if event["event"] == "step"]  # type: ignore[attr-defined]
    assert len(steps) == 30 and min(event["bytes_sent"] for event in steps) > 0
    return [event["loss"] for event in steps]


def test_the_new_strategy_averages_weights(tmp_path: Path) -> None:
    """With plain SGD, averages of weights after each step are those of `allreduce`, to rounding."""
    copy = follow("new-strategy.md", tmp_path)
    plain = "--task points --workers 2 --threads 1 --batch-size 256 --max-steps 30 --precision fp64 --json"
    plain += " --optimizer sgd --momentum 0 --clip 0 --lr 0.3 --hidden 16 --shares 3:1 --strategy average"
    result = run_tenor("train", "points", "--out", tmp_path / "run", *plain.split(), env=copy).ok().json
    assert result["steps"] == 30 and result["bytes_sent"] > 0
    found = losses(tmp_path / "run")
    np.testing.assert_allclose(found, losses_of_allreduce(), rtol=1e-9)
    assert found[-5:].mean() < found[:5].mean()


def test_the_new_cell_learns_and_its_run_can_be_loaded(data: Path, tmp_path: Path) -> None:
    copy = follow("new-cell.md", tmp_path)
    small = "--workers 1 --threads 1 --hidden 8 --embedding-dim 8 --embeddings none"
    small += " --batch-size 32 --epochs 2 --lr 0.01 --json"
    run = tmp_path / "run"
    result = run_tenor("train", data, "--out", run, "--cell", "mgu", *small.split(), env=copy).ok().json
    assert result["test"]["accuracy"] > result["test"]["majority_baseline"]["accuracy"] + 0.1
    again = run_tenor("evaluate", run, data, "--json", env=copy).ok().json
    assert again["accuracy"] == pytest.approx(result["test"]["accuracy"], abs=1e-6)
