"""Stop after any batch and go on: the same bits as a run that was never stopped."""

from __future__ import annotations

import signal
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from helpers.training import SMALL, events

from tenor.errors import Stopped
from tenor.training.job import Job
from tenor.training.rank import train_as
from tenor.training.reviews import Reviews
from tenor.world import World

SETTINGS = replace(SMALL, batch_size=30, epochs=2, checkpoint_steps=10_000)


def train_here(data: Path, out: Path, stop_after: int = 0, resume: bool = False) -> dict[str, Any]:
    """Train in this process; a signal seems to come during step `stop_after`."""
    out.mkdir(exist_ok=True)
    return train_as(World(), Job(str(data), str(out), SETTINGS, resume), lambda event: None, signals(stop_after))


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


def test_global_batches_are_the_same_for_any_number_of_workers(data: Path) -> None:
    import numpy as np

    task = Reviews(data, SETTINGS)
    try:
        for k in (0, 17, task.order.num_batches - 1):
            whole = task.load(1, k, 0, np.ones(1))
            for size in (2, 3, 7):
                parts = [task.load(1, k, rank, np.ones(size)) for rank in range(size)]
                keys = np.concatenate([part.keys for part in parts])
                np.testing.assert_array_equal(keys, whole.keys)
                assert all(np.array_equal(part.rows, whole.rows) for part in parts)
    finally:
        task.close()
