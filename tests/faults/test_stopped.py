"""A worker that SIGSTOP stops is named at once, counts as lost after the time-out, and is killed."""

from __future__ import annotations

import json
import signal
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import psutil
import pytest
from helpers.corpora import make_reviews, write_json_lines
from helpers.processes import child_environment, python
from helpers.training import events

import tenor

SMALL = "--embeddings none --hidden 32 --embedding-dim 8 --batch-size 64 --epochs 40 --checkpoint-steps 5 --dropout 0"


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("prepared")
    tenor.prepare([write_json_lines(folder / "reviews.jsonl", make_reviews(1500, seed=3))], folder / "data", workers=1)
    return folder / "data"


@contextmanager
def training(data: Path, out: Path, options: str) -> Iterator[subprocess.Popen[str]]:
    words = f"-m tenor train {data} --out {out} --workers 3 --threads 1 {SMALL} {options}".split()
    pipe = subprocess.PIPE
    process = subprocess.Popen(python(*words), env=child_environment(), stdout=pipe, stderr=pipe, text=True)
    try:
        yield process
    finally:
        process.kill()
        process.communicate()


def stop(process: subprocess.Popen[str], run: Path, rank: int, after_steps: int) -> psutil.Process:
    """Stop the worker with this rank once the run has made `after_steps` steps."""
    until = time.monotonic() + 60
    while not (run / "metrics.jsonl").exists() or len(events(run)) < after_steps:
        assert time.monotonic() < until and process.poll() is None, "the run never got so far"
        time.sleep(0.01)
    workers = psutil.Process(process.pid).children()
    worker = next(child for child in workers if child.environ().get("TENOR_RANK") == str(rank))
    worker.send_signal(signal.SIGSTOP)
    return worker


@pytest.mark.parametrize("rank", [pytest.param(0, marks=pytest.mark.soak), 2])
def test_a_stopped_worker_is_named_and_lost_after_its_time_out(data: Path, tmp_path: Path, rank: int) -> None:
    run = tmp_path / "run"
    with training(data, run, "--timeout 4") as process:
        worker = stop(process, run, rank, after_steps=3)
        began = time.monotonic()
        _, stderr = process.communicate(timeout=40)
    assert process.returncode == 1
    assert 2.0 < time.monotonic() - began < 20.0
    errors = [line for line in stderr.splitlines() if line.startswith("tenor: ")]
    assert (
        len(errors) == 1
        and f"worker {rank} " in errors[0]
        and "no answer until the time-out; it is stopped" in errors[0]
    )
    assert f"warning: worker {rank} is stopped" in stderr
    assert not worker.is_running()


def test_when_all_are_stopped_the_launcher_s_own_time_out_counts(data: Path, tmp_path: Path) -> None:
    run = tmp_path / "run"
    with training(data, run, "--timeout 4") as process:  # time to stop all of them
        workers = [stop(process, run, rank, after_steps=3) for rank in range(3)]
        _, stderr = process.communicate(timeout=40)
    assert process.returncode == 1
    assert "worker 0 on" in stderr and "no answer until the time-out; it is stopped" in stderr
    assert not any(worker.is_running() for worker in workers)


@pytest.mark.soak
def test_asked_to_end_a_run_does_not_wait_for_a_stopped_worker_nor_start_again(data: Path, tmp_path: Path) -> None:
    run = tmp_path / "run"
    with training(data, run, "--max-restarts 3") as process:
        stop(process, run, rank=1, after_steps=12)
        process.terminate()
        _, stderr = process.communicate(timeout=60)
    assert process.returncode == 143
    assert "worker 1 on" in stderr and "it is stopped" in stderr and "--resume" in stderr
    assert "restart" not in stderr


@pytest.mark.soak
def test_a_stopped_worker_is_replaced_and_the_run_goes_on_with_its_shares(data: Path, tmp_path: Path) -> None:
    run = tmp_path / "run"
    options = "--timeout 4 --max-restarts 1 --max-steps 60 --balance steps:5 --slowdown 1:8"
    with training(data, run, options) as process:
        stop(process, run, rank=1, after_steps=25)
        _, stderr = process.communicate(timeout=60)
    assert process.returncode == 0, stderr
    assert "worker 1 " in stderr and "restart 1 of 1" in stderr
    result = json.loads((run / "result.json").read_text("utf-8"))
    assert result["steps"] == 60
    shares = {event["step"]: event["shares"] for event in events(run)}
    assert sorted(shares) == list(range(1, 61))
    assert all(max(shares[step]) < 30 for step in (1, 2))  # equal at first
    slowest = [own[1] / sum(own) for step, own in shares.items() if 27 <= step < 32]  # soon after the restart
    assert max(slowest) < 0.28  # a fresh start would give a third; others at work on the machine hide some slowness


@pytest.mark.soak
def test_a_worker_that_goes_on_in_time_is_no_loss(data: Path, tmp_path: Path) -> None:
    run = tmp_path / "run"
    with training(data, run, "--timeout 30 --max-steps 400 --json") as process:  # so that it is seen to go on
        worker = stop(process, run, rank=1, after_steps=3)
        time.sleep(2.5)
        worker.send_signal(signal.SIGCONT)
        stdout, stderr = process.communicate(timeout=60)
    assert process.returncode == 0, stderr
    assert len(events(run)) == 400 == json.loads(stdout)["steps"]
    assert len(stderr.splitlines()) == 2  # with --json nothing but warnings is said
    assert "warning: worker 1 is stopped" in stderr and "warning: worker 1 continues" in stderr
