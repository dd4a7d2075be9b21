"""Checkpoints and results from strangers are checked before use and refused with a reason."""

from __future__ import annotations

import json
import math
import os
import tracemalloc
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import nn

from tenor.errors import RunError
from tenor.models.weights import copy_saved
from tenor.training.optim.optimizers import Adam, Optimizer
from tenor.training.runs.checkpoint import Checkpoint, largest_part, newest_checkpoint, save_checkpoint
from tenor.training.runs.config import FORMAT
from tenor.training.runs.cursor import Cursor
from tenor.training.runs.folder import MAX_BYTES, RunFolder
from tenor.training.runs.resume import check_same, finished_result
from tenor.training.settings import TrainSettings


def saved(step: int = 3) -> Checkpoint:
    return Checkpoint(step, {"weights/a": torch.ones(4)}, {"epoch": 1, "best": -math.inf})


@pytest.mark.parametrize("name", ["step-0000000003.json", "step-0000000003.safetensors"])
@pytest.mark.parametrize("kind", ["link", "pipe", "large"])
def test_links_and_large_files_are_passed_over(tmp_path: Path, name: str, kind: str) -> None:
    save_checkpoint(tmp_path, saved(), keep=2)
    file = tmp_path / name
    if kind == "link":
        file.rename(tmp_path / "elsewhere")
        file.symlink_to(tmp_path / "elsewhere")
    else:
        file.unlink()
        if kind == "pipe":
            os.mkfifo(file)
        else:
            with file.open("wb") as sparse:
                sparse.truncate(1 << 40)
    found, refused = newest_checkpoint(tmp_path)
    assert found is None and len(refused) == 1 and "step-0000000003" in refused[0]


def test_a_folder_of_checkpoints_that_is_a_link_is_refused(tmp_path: Path) -> None:
    save_checkpoint(tmp_path / "elsewhere", saved(), keep=2)
    (tmp_path / "checkpoints").symlink_to(tmp_path / "elsewhere")
    with pytest.raises(RunError, match="symbolic link"):
        newest_checkpoint(tmp_path / "checkpoints")


@pytest.mark.parametrize(
    ("field", "value"),
    [("step", 4), ("step", "3"), ("step", 10**400), ("parts", {}), ("parts", [7]), ("parts", []), ("values", [])],
)
def test_an_index_with_its_hash_but_wrong_values(tmp_path: Path, field: str, value: Any) -> None:
    from tenor.training.runs.checkpoint import _seal

    save_checkpoint(tmp_path, saved(), keep=2)
    file = tmp_path / "step-0000000003.json"
    index = json.loads(file.read_bytes())["index"]
    file.write_bytes(_seal({**index, field: value}))
    found, refused = newest_checkpoint(tmp_path)
    assert found is None and len(refused) == 1


def test_a_file_far_larger_than_the_model_is_not_read(tmp_path: Path) -> None:
    save_checkpoint(tmp_path, saved(), keep=2)
    os.truncate(tmp_path / "step-0000000003.safetensors", 200 << 20)
    found, refused = newest_checkpoint(tmp_path, largest_part(1 << 20))
    assert found is None and "has more than the 100,663,296 bytes allowed" in refused[0]


@pytest.mark.parametrize("text", ["[]", "{}", '{"index": 1}', "[" * 100_000, "7", '{"index": {}, "sha256": ""}'])
def test_an_index_that_is_not_one(tmp_path: Path, text: str) -> None:
    (tmp_path / "step-0000000003.json").write_text(text)
    found, refused = newest_checkpoint(tmp_path)
    assert found is None and len(refused) == 1


@pytest.mark.parametrize(
    "changes",
    [
        {"epoch": "1"},
        {"epoch": -1},
        {"batch": 1.5},
        {"step": True},
        {"seconds": math.nan},
        {"step_seconds": -1.0},
        {"loss_sum": math.inf},
        {"best": math.nan},
        {"best": "high"},
        {"best_valid": []},
        {"is_finished": 0},
        {"samples": 1 << 63},
        {"unknown": 1},
    ],
)
def test_wrong_values_of_the_cursor(changes: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match=next(iter(changes))):
        Cursor.from_dict({**vars(Cursor()), **changes})


def test_a_cursor_goes_round() -> None:
    cursor = replace(Cursor(), epoch=2, best=0.5, seconds=3, loss_sum=-1.5, best_valid={"auc": None})
    assert Cursor.from_dict(json.loads(json.dumps(vars(cursor)))) == cursor
    assert Cursor.from_dict({}) == Cursor()  # older checkpoints have fewer values


@pytest.mark.parametrize(
    ("tensor", "words"),
    [
        (torch.ones(1), r"has the shape \[1\], not \[3\]"),  # would be spread over all three
        (torch.ones(3, dtype=torch.float64), "float64"),
        (torch.tensor([1.0, torch.nan, 1.0]), "not finite"),
        (None, "has no tensor 'a'"),
    ],
)
def test_tensors_are_compared_before_they_are_copied(tensor: torch.Tensor | None, words: str) -> None:
    target = torch.zeros(3)
    with pytest.raises(ValueError, match=words):
        copy_saved(target, {} if tensor is None else {"a": tensor}, "a")
    assert torch.equal(target, torch.zeros(3))


def test_optimizer_state_of_another_shape_is_refused() -> None:
    optimizer = Optimizer(nn.Linear(2, 3), Adam())
    state = {name: torch.ones(1) for name in optimizer.state_dict()}
    with pytest.raises(ValueError, match="shape"):
        optimizer.load_state_dict(state, 1)


def write_result(run: Path, **changes: Any) -> None:
    settings = vars(TrainSettings(task="points"))
    (run / "config.json").write_text(json.dumps({"format": FORMAT, "settings": settings}))
    result = {"steps": 1, "seconds": 1.0, "samples_per_s": 2.0, "valid": {}, "test": {}}
    (run / "result.json").write_text(json.dumps({**result, **changes}))


@pytest.mark.parametrize(
    "changes", [{"steps": "1"}, {"seconds": None}, {"test": [1]}, {"samples_per_s": True}, {"test": {"accuracy": "x"}}]
)
def test_a_result_that_cannot_be_shown(tmp_path: Path, changes: dict[str, Any]) -> None:
    settings = vars(TrainSettings(task="points"))
    write_result(tmp_path)
    assert finished_result(tmp_path, tmp_path, settings) is not None
    write_result(tmp_path, **changes)
    with pytest.raises(RunError, match=next(iter(changes))):
        finished_result(tmp_path, tmp_path, settings)


def test_a_config_that_is_a_list_or_knows_more_is_refused(tmp_path: Path) -> None:
    config = {"format": FORMAT, "settings": vars(TrainSettings())}
    (tmp_path / "config.json").write_text("[]")
    with pytest.raises(RunError, match=r"config\.json"):
        check_same(tmp_path, config)
    (tmp_path / "config.json").write_text(json.dumps({"format": FORMAT, "settings": {"magic": 1}}))
    with pytest.raises(RunError, match="unknown key 'magic'"):
        check_same(tmp_path, config)
    (tmp_path / "config.json").write_text(json.dumps({"settings": {}}))
    with pytest.raises(RunError, match=r"has format 1.*train it again"):
        check_same(tmp_path, config)


def test_events_that_are_not_events_are_dropped(tmp_path: Path) -> None:
    lines = ['{"event": "step", "step": 1}', "[]", '{"step": 1}', '{"event": "step", "step": "x"}', "7", "{"]
    (tmp_path / "metrics.jsonl").write_text("\n".join(lines) + "\n")
    RunFolder(tmp_path).rewind(5)
    assert (tmp_path / "metrics.jsonl").read_text().splitlines() == lines[:1]
    (tmp_path / "metrics.jsonl").unlink()
    (tmp_path / "metrics.jsonl").symlink_to("/dev/zero")
    with pytest.raises(RunError, match="symbolic link"):
        RunFolder(tmp_path).rewind(5)


def test_a_log_is_shortened_one_line_at_a_time(tmp_path: Path) -> None:
    """A sparse file of many gigabytes costs its author nothing."""
    log, event = tmp_path / "metrics.jsonl", '{"event": "step", "step": 1}\n'
    log.write_text(event)
    with log.open("r+b") as file:
        file.truncate(64 << 20)
        file.seek(0, os.SEEK_END)
        file.write(f"\n{event}".encode())
    tracemalloc.start()
    try:
        RunFolder(tmp_path).rewind(5)
        assert tracemalloc.get_traced_memory()[1] < 24 << 20
    finally:
        tracemalloc.stop()
    assert log.read_text() == 2 * event
    log.write_text(event + event.strip())  # the last newline may be missing
    RunFolder(tmp_path).rewind(5)
    assert log.read_text() == 2 * event
    os.truncate(log, MAX_BYTES + 1)
    with pytest.raises(RunError, match=r"metrics\.jsonl: has 4,294,967,297 bytes"):
        RunFolder(tmp_path).rewind(5)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["metrics.jsonl"]


def test_what_is_not_finite_is_written_as_null(tmp_path: Path) -> None:
    RunFolder(tmp_path).log({"event": "step", "loss": math.nan, "shares": [math.inf, 1.0]})
    assert (tmp_path / "metrics.jsonl").read_text() == '{"event": "step", "loss": null, "shares": [null, 1.0]}\n'
