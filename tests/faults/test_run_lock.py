"""A run folder belongs to one run at a time, from its start until its last worker has ended."""

from __future__ import annotations

import hashlib
import json
import signal
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from typing import Any

import psutil
import pytest
from helpers.processes import python, running
from helpers.training import weights

import tenor
from tenor.errors import UsageError
from tenor.progress import Silent
from tenor.store.lock import NAME, locked
from tenor.training.launching import launch

POINTS = tenor.TrainSettings(task="points", hidden=8, batch_size=1000, threads=1, workers="1", test=False, max_steps=5)


def hash_of(run: Path) -> str:
    total = hashlib.sha256()
    for name, weight in sorted(weights(run).items()):
        total.update(f"{name} {weight.shape} torch.{weight.dtype}\n".encode() + weight.tobytes())
    return total.hexdigest()


def test_of_two_that_start_at_once_one_is_refused(tmp_path: Path) -> None:
    run = tmp_path / "run"

    def train(seed: int) -> dict[str, Any] | str:
        try:
            return tenor.train("points", run, replace(POINTS, seed=seed)).as_dict()
        except UsageError as error:
            return str(error)

    with ThreadPoolExecutor(2) as both:
        found = list(both.map(train, (1, 2)))
    (winner,) = [seed for seed, outcome in enumerate(found, 1) if isinstance(outcome, dict)]
    result, said = found[winner - 1], found[2 - winner]
    assert isinstance(result, dict) and isinstance(said, str)
    assert "is in use by " in said or "is not empty" in said  # the winner may not have signed the lock yet
    assert json.loads((run / "config.json").read_bytes())["settings"]["seed"] == winner
    assert hash_of(run) == result["weights_sha256"]
    assert not (run / NAME).exists()


def test_a_run_that_is_still_going_is_neither_replaced_nor_resumed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """After the launcher was killed, a live worker still holds the folder; the run can be resumed once it has ended."""
    monkeypatch.setattr(launch, "RELEASE_SECONDS", 0.2)
    run, resumed = tmp_path / "run", replace(POINTS, resume=True)
    options = ("--hidden", "8", "--batch-size", "1000", "--threads", "1", "--workers", "1", "--no-test")
    more = ("--out", str(run), "--epochs", "100000", "--checkpoint-steps", "5")
    with running(python("-m", "tenor", "train", "points", "--task", "points", *options, *more)) as process:
        until = time.monotonic() + 100
        while not ((log := run / "metrics.jsonl").exists() and log.stat().st_size):
            assert process.poll() is None and time.monotonic() < until
            time.sleep(0.02)
        with pytest.raises(UsageError, match=f"is in use by process {process.pid};"):
            tenor.train("points", run, resumed)
        with pytest.raises(UsageError, match="is not empty"):
            tenor.train("points", run, POINTS)
        (worker,) = psutil.Process(process.pid).children()
        worker.send_signal(signal.SIGSTOP)
        while worker.status() != psutil.STATUS_STOPPED:  # before that, it would notice that the launcher has ended
            assert time.monotonic() < until
            time.sleep(0.01)
        process.kill()
        process.wait()
        try:
            with pytest.raises(UsageError, match=f"is in use by a worker of process {process.pid}, which has ended;"):
                tenor.train("points", run, resumed)
        finally:
            worker.send_signal(signal.SIGCONT)
        psutil.wait_procs([worker], timeout=60)
    with locked(run):
        pass


def test_the_first_rank_of_another_launcher_holds_the_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    run, tried = tmp_path / "run", list[str]()

    class Intruder(Silent):
        def say(self, line: str) -> None:
            with pytest.raises(UsageError, match="is in use"), locked(run):
                pass
            tried.append(line)

    variables = {"RANK": "0", "WORLD_SIZE": "1", "LOCAL_RANK": "0", "LOCAL_WORLD_SIZE": "1"}
    for name, value in variables.items():
        monkeypatch.setenv(name, value)
    before = signal.getsignal(signal.SIGTERM), signal.getsignal(signal.SIGINT)
    try:
        with locked(run), pytest.raises(UsageError, match="is in use"):
            tenor.train("points", run, POINTS)
        tenor.train("points", run, POINTS, progress=Intruder())
    finally:
        signal.signal(signal.SIGTERM, before[0])
        signal.signal(signal.SIGINT, before[1])
    assert tried and not (run / NAME).exists()
