"""Word vectors that are killed at random moments and resumed end as well as undisturbed ones."""

from __future__ import annotations

import random
import signal
import subprocess
import time
from pathlib import Path
from typing import Any

import pytest
from helpers.processes import finish, python, running
from helpers.topics import EMBED_OPTIONS

pytestmark = pytest.mark.serial  # real processes and signals


def embed(text: Path, out: Path, epochs: int, *options: str) -> list[str]:
    given = ("--workers", "2", "--epochs", str(epochs), "--checkpoint-seconds", "0.2", *EMBED_OPTIONS, *options)
    return python("-m", "tenor", "embed", str(text), "--out", str(out), "--json", *given)


def wait_until_training(out: Path, process: subprocess.Popen[bytes]) -> bool:
    """Wait for this process's first checkpoint; False if it ends before."""
    until, progress = time.monotonic() + 100, out / "checkpoint" / "progress.json"
    before = progress.stat().st_mtime_ns if progress.exists() else 0
    while process.poll() is None:
        assert time.monotonic() < until
        if progress.exists() and progress.stat().st_mtime_ns > before:
            return True
        time.sleep(0.005)
    return False


@pytest.mark.soak
@pytest.mark.timeout(1800)
def test_twenty_kills_at_random_moments(text: Path, tmp_path: Path) -> None:
    """`test_embed.py` has the same with one kill."""
    rng, out, kills, epochs, done = random.Random(0), tmp_path / "out", 20, 600, 0
    with running(embed(text, tmp_path / "whole", epochs)) as process:
        whole = finish(process, 600)
    result: dict[str, Any] = {}
    while not result:
        with running(embed(text, out, epochs, "--resume")) as process:
            if done < kills and wait_until_training(out, process):
                time.sleep(rng.uniform(0, 1.0))
                process.send_signal(signal.SIGKILL)
                process.wait(60)
                done += 1
            else:
                result = finish(process, 600)
    print(f"loss after {done} kills {result['loss']:.6f}, undisturbed {whole['loss']:.6f}")
    assert done == kills, "the training ended before all kills: give it more epochs"
    assert result["loss"] == pytest.approx(whole["loss"], rel=0.01)
    assert sorted(file.name for file in out.iterdir()) == [
        "README.md",
        "config.json",
        "vectors.safetensors",
        "vocab.json",
    ]
