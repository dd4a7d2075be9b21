"""A run that is stopped after any batch and resumed has the same bits as a run without a stop."""

from __future__ import annotations

import json
import signal
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch
from helpers.corpora import make_reviews, write_json_lines
from helpers.training import SMALL, events, load_part, load_whole

import tenor
from tenor.errors import RunError, Stopped, name_settings
from tenor.training.assemble import train_as
from tenor.training.job import TrainingJob
from tenor.training.runs import recorder
from tenor.training.runs.checkpoint import newest_checkpoint, save_checkpoint
from tenor.training.runs.recorder import EventHandler
from tenor.training.tasks.reviews import Reviews
from tenor.world import World

SETTINGS = replace(SMALL, batch_size=30, epochs=2, checkpoint_steps=10_000)


def train_here(
    data: Path,
    out: Path,
    stop_after: int = 0,
    resume: bool = False,
    tell: EventHandler = lambda event: None,
    **changes: Any,
) -> dict[str, Any]:
    """Train in this process, with a simulated signal during step `stop_after`."""
    out.mkdir(exist_ok=True)
    job = TrainingJob(str(data), str(out), replace(SETTINGS, **changes), resume)
    return train_as(World(), job, tell, signals(stop_after))


def signals(at: int) -> Callable[[], int]:
    def count() -> Iterator[int]:
        step = 0
        while True:
            step += 1
            yield signal.SIGTERM if step == at else 0

    return count().__next__


@pytest.fixture(scope="module")
def uninterrupted(data: Path, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    return train_here(data, tmp_path_factory.mktemp("whole") / "run")


def stop_and_go_on(data: Path, run: Path, step: int, expected: dict[str, Any]) -> None:
    with pytest.raises(Stopped):
        train_here(data, run, stop_after=step)
    assert len(events(run)) == step
    found = train_here(data, run, resume=True)
    assert found["weights_sha256"] == expected["weights_sha256"]
    assert found["test"] == expected["test"]
    assert [event["step"] for event in events(run)] == list(range(1, expected["steps"] + 1))


@pytest.mark.parametrize("step", [1, 2, 19, 39, 40, 41, 60])
def test_stop_after_a_batch(data: Path, tmp_path: Path, uninterrupted: dict[str, Any], step: int) -> None:
    stop_and_go_on(data, tmp_path / "run", step, uninterrupted)


@pytest.mark.soak
def test_stop_after_each_batch_of_an_epoch(data: Path, tmp_path: Path, uninterrupted: dict[str, Any]) -> None:
    for step in range(1, 41):
        stop_and_go_on(data, tmp_path / str(step), step, uninterrupted)


def test_stop_again_and_again(data: Path, tmp_path: Path, uninterrupted: dict[str, Any]) -> None:
    for times in range(9):
        with pytest.raises(Stopped):
            train_here(data, tmp_path / "run", stop_after=7, resume=times > 0)
    found = train_here(data, tmp_path / "run", resume=True)
    assert found["weights_sha256"] == uninterrupted["weights_sha256"]


def test_a_signal_in_the_very_last_step_leaves_nothing_to_do(data: Path, tmp_path: Path) -> None:
    whole = train_here(data, tmp_path / "whole", max_steps=9)
    with pytest.raises(Stopped):
        train_here(data, tmp_path / "run", stop_after=9, max_steps=9)
    found = train_here(data, tmp_path / "run", resume=True, max_steps=9)
    assert found["steps"] == 9
    assert (found["weights_sha256"], found["test"]) == (whole["weights_sha256"], whole["test"])


def test_a_finished_run_stays_as_it_is(data: Path, tmp_path: Path) -> None:
    settings = replace(SETTINGS, workers=1, epochs=1)
    first = tenor.train(data, tmp_path / "run", settings).as_dict()
    before = {file.name: file.read_bytes() for file in (tmp_path / "run").iterdir()}
    again = tenor.train(data, tmp_path / "run", replace(settings, resume=True)).as_dict()
    assert again == first
    assert {file.name: file.read_bytes() for file in (tmp_path / "run").iterdir()} == before
    with pytest.raises(RunError, match="was finished with epochs 1, not 2"):
        tenor.train(data, tmp_path / "run", replace(settings, resume=True, epochs=2))
    other = write_json_lines(tmp_path / "other.jsonl", make_reviews(300, seed=5))
    tenor.prepare([other], tmp_path / "other", workers=1)
    with pytest.raises(RunError, match="other data"):
        tenor.train(tmp_path / "other", tmp_path / "run", replace(settings, resume=True))
    assert {file.name: file.read_bytes() for file in (tmp_path / "run").iterdir()} == before


def test_no_epoch_is_told_of_which_no_step_was_made(data: Path, tmp_path: Path) -> None:
    with pytest.raises(Stopped):
        train_here(data, tmp_path / "run", stop_after=41)  # the checkpoint before is that of the first epoch's end
    for file in (tmp_path / "run" / "checkpoints").glob("*41*"):
        file.unlink()
    found = train_here(data, tmp_path / "run", resume=True, max_steps=40)
    assert (found["steps"], found["epochs"], found["kept_epoch"]) == (40, 1, 1)


@pytest.mark.parametrize(
    ("changes", "said"),
    [({"batch_size": 60}, "batch_size 30, not 60"), ({"seed": 1}, "seed"), ({"hidden": 9}, "hidden")],
)
def test_a_run_goes_on_as_it_began(data: Path, tmp_path: Path, changes: dict[str, Any], said: str) -> None:
    with pytest.raises(Stopped):
        train_here(data, tmp_path / "run", stop_after=5)
    with pytest.raises(RunError, match=said):
        train_here(data, tmp_path / "run", resume=True, **changes)
    config = json.loads((tmp_path / "run" / "config.json").read_bytes())
    (tmp_path / "run" / "config.json").write_text(json.dumps({**config, "data_sha256": "of other rows"}))
    with pytest.raises(RunError, match="other data"):
        train_here(data, tmp_path / "run", resume=True)


def test_batches_that_were_done_out_of_order_are_not_taken_for_the_first_ones(data: Path, tmp_path: Path) -> None:
    with pytest.raises(Stopped):
        train_here(data, tmp_path / "run", stop_after=5)
    folder = tmp_path / "run" / "checkpoints"
    saved, _ = newest_checkpoint(folder)
    assert saved is not None
    done = {"strategy/done": torch.tensor([0, 1, 2, 4, 5])}
    save_checkpoint(folder, replace(saved, tensors=saved.tensors | done), keep=1)
    with pytest.raises(RunError, match="asynchronous"):
        train_here(data, tmp_path / "run", resume=True)


def test_a_checkpoint_that_is_passed_over_is_told_and_what_a_kill_left_is_removed(data: Path, tmp_path: Path) -> None:
    with pytest.raises(Stopped):
        train_here(data, tmp_path / "run", stop_after=45, checkpoint_steps=5)
    folder, told = tmp_path / "run" / "checkpoints", list[dict[str, Any]]()
    (folder / "step-0000000045.safetensors").write_bytes(b"damaged")
    left = [folder / ".step-0000000044.safetensors.1.tmp", tmp_path / "run" / ".model.safetensors.0f3a9c5e7b1d2468.tmp"]
    for file in left:
        file.write_bytes(b"half")
    train_here(data, tmp_path / "run", resume=True, tell=told.append)
    warnings = [event["message"] for event in told if event["event"] == "warning"]
    assert len(warnings) == 1 and "step-0000000045.json" in warnings[0]
    assert told[1]["step"] == 40
    assert not any(file.exists() for file in left)


def test_no_word_of_a_checkpoint_that_could_not_be_saved(
    data: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*_: Any) -> None:
        raise OSError(28, "No space left on device")

    real, told = recorder.save_checkpoint, list[dict[str, Any]]()
    monkeypatch.setattr(recorder, "save_checkpoint", full)
    none = "there is no earlier one, so --resume starts from the beginning"
    with pytest.raises(Stopped, match=name_settings(f"no checkpoint could be saved; {none}")):
        train_here(data, tmp_path / "run", stop_after=5, checkpoint_steps=3, tell=told.append)
    (warning, last) = [event["message"] for event in told if event["event"] == "warning"]
    assert warning == last == f"checkpoint not saved: [Errno 28] No space left on device; {none}"

    monkeypatch.setattr(recorder, "save_checkpoint", real)
    with pytest.raises(Stopped, match="saved a checkpoint; resume continues from it"):
        train_here(data, tmp_path / "run", stop_after=4, resume=True)
    monkeypatch.setattr(recorder, "save_checkpoint", full)
    with pytest.raises(Stopped, match="no checkpoint could be saved; resume continues from step 4"):
        train_here(data, tmp_path / "run", stop_after=2, resume=True)


def test_metrics_are_not_written_through_a_link(data: Path, tmp_path: Path) -> None:
    run, target = tmp_path / "run", tmp_path / "precious.txt"
    target.write_text("precious\n")

    def link(event: dict[str, Any]) -> None:
        (run / "metrics.jsonl").unlink(missing_ok=True)
        (run / "metrics.jsonl").symlink_to(target)

    with pytest.raises(RunError, match=r"metrics\.jsonl: is a symbolic link; remove the link"):
        train_here(data, run, tell=link)
    with pytest.raises(RunError, match="is a symbolic link"):
        train_here(data, run, resume=True)
    assert target.read_text() == "precious\n"


def test_global_batches_are_the_same_for_any_number_of_workers(data: Path) -> None:
    import numpy as np

    task = Reviews(data, replace(SETTINGS, class_weights="3,0.5"))
    try:
        for k in (0, 17, task.order.num_batches - 1):
            whole = load_whole(task, 1, k)
            for size in (2, 3, 7):
                parts = [load_part(task, 1, k, rank, np.ones(size)) for rank in range(size)]
                keys = np.concatenate([part.keys for part in parts])
                np.testing.assert_array_equal(keys, whole.keys)
                for name, rows in whole.rows.items():
                    assert all(np.array_equal(part.rows[name], rows) for part in parts)
                weights = np.array([3.0, 0.5])[whole.labels.numpy()]
                assert all(part.global_weight == weights.sum() for part in parts)
    finally:
        task.close()
