"""Training under real signals, killed workers, damaged checkpoints and a full disk."""

from __future__ import annotations

import contextlib
import json
import os
import random
import signal
import subprocess
import time
from collections.abc import Callable
from contextlib import AbstractContextManager
from pathlib import Path

import psutil
import pytest
from helpers.corpora import make_reviews, write_json_lines
from helpers.processes import finish, python, running

import tenor

SIZES = ("--hidden", "8", "--embedding-dim", "8", "--embeddings", "none", "--batch-size", "16")
OPTIONS = (*SIZES, "--epochs", "4", "--checkpoint-steps", "7")


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("prepared")
    raw = write_json_lines(folder / "reviews.jsonl", make_reviews(1500, seed=3))
    tenor.prepare([raw], folder / "data", workers=1)
    return folder / "data"


@pytest.fixture(scope="module")
def undisturbed(data: Path, tmp_path_factory: pytest.TempPathFactory) -> str:
    """Return the hash of the weights of an undisturbed run."""
    with training(data, tmp_path_factory.mktemp("undisturbed") / "run") as process:
        return str(finish(process)["weights_sha256"])


def training(data: Path, out: Path, *options: str, workers: int = 2) -> AbstractContextManager[subprocess.Popen[bytes]]:
    given = ("--out", str(out), "--workers", str(workers), "--json", *OPTIONS)
    return running(python("-m", "tenor", "train", str(data), *given, *options))


def steps_done(run: Path) -> int:
    try:
        return (run / "metrics.jsonl").read_text().count('"step", "epoch"')
    except OSError:
        return 0


def wait_for(condition: Callable[[], bool], timeout: float = 60, pause: float = 0.01) -> None:
    until = time.monotonic() + timeout
    while not condition():
        assert time.monotonic() < until, "it did not happen in time"
        time.sleep(pause)


def workers_of(process: subprocess.Popen[bytes]) -> list[psutil.Process]:
    """Return the worker processes in order of rank."""
    children = psutil.Process(process.pid).children()
    return sorted(children, key=lambda child: int(child.environ()["TENOR_RANK"]))


def damage(file: Path) -> None:
    image = bytearray(file.read_bytes())
    image[len(image) // 2] ^= 1
    file.write_bytes(image)


@pytest.mark.parametrize(
    ("number", "is_damaged"),
    [(signal.SIGTERM, False), pytest.param(signal.SIGINT, True, marks=pytest.mark.soak)],
)
def test_a_signal_saves_and_resume_goes_on_to_the_same_bits(
    data: Path, tmp_path: Path, undisturbed: str, number: signal.Signals, is_damaged: bool
) -> None:
    """A damaged checkpoint is passed over, and the run goes on from the one before."""
    run = tmp_path / "run"
    with training(data, run) as process:
        wait_for(lambda: steps_done(run) >= 20 and len(list((run / "checkpoints").glob("*.json"))) == 2)
        process.send_signal(number)
        _, stderr = process.communicate(timeout=30)
    assert process.returncode == 128 + number
    assert b"--resume" in stderr
    if is_damaged:
        damage(max((run / "checkpoints").glob("*.safetensors")))
    with training(data, run, "--resume") as process:
        assert finish(process)["weights_sha256"] == undisturbed
    logged = [json.loads(line) for line in (run / "metrics.jsonl").read_text().splitlines()]
    steps = [event["step"] for event in logged if event["event"] == "step"]
    assert steps == list(range(1, len(steps) + 1))


def test_the_worker_that_could_not_save_has_the_last_word(data: Path, tmp_path: Path) -> None:
    """The other workers do not know that saving failed, and may end earlier."""
    run = tmp_path / "run"
    with training(data, run, "--checkpoint-steps", "1000") as process:
        wait_for(lambda: steps_done(run) >= 5)
        assert not (run / "checkpoints").exists()
        (run / "checkpoints").write_text("in the way")
        process.terminate()
        _, stderr = process.communicate(timeout=30)
    assert process.returncode == 128 + signal.SIGTERM
    assert b"no checkpoint could be saved" in stderr and b"; saved a checkpoint" not in stderr


@pytest.mark.parametrize("rank", [0, pytest.param(1, marks=pytest.mark.soak)])  # 1: see tests/contracts
def test_a_killed_worker_is_named_and_the_others_stop(data: Path, tmp_path: Path, rank: int) -> None:
    run = tmp_path / "run"
    with training(data, run) as process:
        wait_for(lambda: steps_done(run) >= 10)
        team = workers_of(process)
        team[rank].kill()
        began = time.monotonic()
        _, stderr = process.communicate(timeout=30)
        assert time.monotonic() - began < 10
    assert process.returncode == 1
    said = stderr.decode()
    assert f"worker {rank}" in said and "SIGKILL" in said and "--resume" in said
    assert not any(child.is_running() for child in team)


def kill_again_and_again(data: Path, run: Path, kills: int, *options: str) -> dict[str, object]:
    """Kill a random rank at random moments; every third kill hits while a checkpoint is being saved."""
    rng = random.Random(5)
    restarts = ("--max-restarts", str(kills + 5), "--checkpoint-steps", "3")
    with training(data, run, *restarts, *options) as process:
        for kill in range(kills):
            reached = steps_done(run)
            wait_for(lambda r=reached: steps_done(run) != r and len(workers_of(process)) == 2)
            if kill % 3 == 2:  # the temporary file exists for milliseconds
                wait_for(lambda: any((run / "checkpoints").glob(".*.tmp")), pause=0.0005)
            else:
                time.sleep(0.2 * rng.random())  # short, because a fast machine finishes the run in about a second
            with contextlib.suppress(psutil.Error, IndexError):
                workers_of(process)[rng.randrange(2)].kill()
            time.sleep(0.3)
        return finish(process, 600)


@pytest.mark.serial
def test_kills_with_restarts_end_in_the_same_bits(data: Path, tmp_path: Path, undisturbed: str) -> None:
    result = kill_again_and_again(data, tmp_path / "run", 3)
    assert result["weights_sha256"] == undisturbed
    assert result["restarts"] == 3


@pytest.mark.soak
def test_twenty_kills_end_in_the_same_bits(data: Path, tmp_path: Path) -> None:
    with training(data, tmp_path / "whole", "--epochs", "60") as process:
        whole = finish(process, 600)
    result = kill_again_and_again(data, tmp_path / "run", 20, "--epochs", "60")
    assert result["weights_sha256"] == whole["weights_sha256"]
    assert result["restarts"] == 20


def test_workers_do_not_outlive_a_killed_launcher(data: Path, tmp_path: Path) -> None:
    run = tmp_path / "run"
    with training(data, run) as process:
        wait_for(lambda: steps_done(run) >= 5)
        team = workers_of(process)
        process.kill()
        process.wait()
        _gone, alive = psutil.wait_procs(team, timeout=15)
    assert not alive


@pytest.mark.soak
def test_resume_on_another_number_of_workers(data: Path, tmp_path: Path) -> None:
    run = tmp_path / "run"
    with training(data, run, workers=1) as process:
        wait_for(lambda: steps_done(run) >= 20)
        process.terminate()
        process.communicate(timeout=30)
    with training(data, run, "--resume", workers=2) as process:
        result = finish(process)
    assert result["workers"] == 2
    test = result["test"]
    assert isinstance(test, dict) and test["accuracy"] > 0.9


def fill(path: Path) -> None:
    """Write until the disk is full, while others write to it as well."""
    with path.open("wb", buffering=0) as file, contextlib.suppress(OSError):
        while True:
            file.write(bytes(4096))


@pytest.mark.skipif(os.geteuid() != 0, reason="a small file system can only be mounted by root")
def test_a_full_disk_keeps_what_was_saved(data: Path, tmp_path: Path, undisturbed: str) -> None:
    disk = tmp_path / "disk"
    disk.mkdir()
    if subprocess.run(["mount", "-t", "tmpfs", "-o", "size=8m", "tmpfs", str(disk)], check=False).returncode:
        pytest.skip("no tmpfs can be mounted here")
    try:
        run = disk / "run"
        with training(data, run) as process:
            wait_for(lambda: len(list((run / "checkpoints").glob("*.json"))) >= 2)
            fill(disk / "filler")
            _, stderr = process.communicate(timeout=60)
        assert process.returncode == 1
        assert "No space left" in stderr.decode() and "Traceback" not in stderr.decode()
        (disk / "filler").unlink()
        with training(data, run, "--resume") as process:
            assert finish(process)["weights_sha256"] == undisturbed
    finally:
        subprocess.run(["umount", str(disk)], check=True)
