"""Checkpoints are complete or absent, damage is always noticed, and the newest valid one is loaded."""

from __future__ import annotations

import random
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
import torch
from helpers.processes import child_environment

from tenor.models.weights import weights_sha256
from tenor.training.runs.checkpoint import Checkpoint, newest_checkpoint, save_checkpoint


def make(step: int) -> Checkpoint:
    generator = torch.Generator().manual_seed(step)
    return Checkpoint(step, {"weights/a": torch.randn(40, 5, generator=generator)}, {"epoch": step, "best": 0.5})


def test_a_checkpoint_goes_round(tmp_path: Path) -> None:
    save_checkpoint(tmp_path / "checkpoints", make(7), keep=2)
    found, refused = newest_checkpoint(tmp_path / "checkpoints")
    assert found is not None and not refused
    assert (found.step, found.values) == (7, {"epoch": 7, "best": 0.5})
    assert torch.equal(found.tensors["weights/a"], make(7).tensors["weights/a"])


def test_the_last_ones_are_kept(tmp_path: Path) -> None:
    for step in (1, 2, 3, 4):
        save_checkpoint(tmp_path, make(step), keep=2)
    assert sorted(path.name for path in tmp_path.iterdir()) == [
        f"step-000000000{step}.{kind}" for step in (3, 4) for kind in ("json", "safetensors")
    ]


def damage_everywhere(folder: Path, times: int) -> None:
    """Flip one random bit of the newest checkpoint, many times. The previous checkpoint must be loaded each time."""
    for step in (1, 2):
        save_checkpoint(folder, make(step), keep=2)
    rng = random.Random(0)
    for _ in range(times):
        file = folder / f"step-0000000002.{rng.choice(['json', 'safetensors'])}"
        whole = file.read_bytes()
        place = rng.randrange(len(whole))
        file.write_bytes(whole[:place] + bytes([whole[place] ^ (1 << rng.randrange(8))]) + whole[place + 1 :])
        found, refused = newest_checkpoint(folder)
        assert found is not None and found.step == 1, (file.name, place)
        assert len(refused) == 1 and "step-0000000002" in refused[0]
        file.write_bytes(whole)
    found, refused = newest_checkpoint(folder)
    assert found is not None and found.step == 2 and not refused


def test_every_flipped_bit_is_noticed(tmp_path: Path) -> None:
    damage_everywhere(tmp_path, 60)


@pytest.mark.soak
def test_every_flipped_bit_is_noticed_500_times(tmp_path: Path) -> None:
    damage_everywhere(tmp_path, 500)


@pytest.mark.parametrize("size", [0, 1, 100, -1])
def test_a_truncated_checkpoint_is_passed_over(tmp_path: Path, size: int) -> None:
    for step in (1, 2):
        save_checkpoint(tmp_path, make(step), keep=2)
    file = tmp_path / "step-0000000002.safetensors"
    file.write_bytes(file.read_bytes()[:size])
    found, refused = newest_checkpoint(tmp_path)
    assert found is not None and found.step == 1 and refused


SAVER = """
import sys
from pathlib import Path
import torch
from tenor.training.runs.checkpoint import Checkpoint, newest_checkpoint, save_checkpoint
folder = Path(sys.argv[1])
found, _ = newest_checkpoint(folder)
step = found.step if found else 0
print("ready", flush=True)
while True:
    step += 1
    tensors = {"weights/a": torch.full((60_000,), float(step))}
    save_checkpoint(folder, Checkpoint(step, tensors, {"epoch": step}), keep=2)
"""


def kill_while_saving(folder: Path, times: int) -> None:
    folder.mkdir()
    rng, last = random.Random(1), 0
    for _ in range(times):
        process = subprocess.Popen(
            [sys.executable, "-c", SAVER, str(folder)], env=child_environment(), stdout=subprocess.PIPE
        )
        with process:
            assert process.stdout is not None and process.stdout.readline() == b"ready\n"
            time.sleep(rng.random() * 0.4)
            process.send_signal(signal.SIGKILL)
        found, _ = newest_checkpoint(folder)
        if found is None:
            assert last == 0
            continue
        assert found.step >= last and bool((found.tensors["weights/a"] == found.step).all())
        last = found.step
    assert last > 0


def test_a_kill_at_any_moment_leaves_a_checkpoint_that_loads(tmp_path: Path) -> None:
    kill_while_saving(tmp_path / "checkpoints", 3)


@pytest.mark.soak
def test_200_kills_leave_a_checkpoint_that_loads(tmp_path: Path) -> None:
    kill_while_saving(tmp_path / "checkpoints", 200)


def test_the_hash_names_names_shapes_types_and_bytes() -> None:
    tensor = torch.arange(6.0)
    hashes = {
        weights_sha256(weights)
        for weights in (
            {"a": tensor},
            {"b": tensor},
            {"a": tensor.reshape(2, 3)},
            {"a": tensor.double()},
            {"a": tensor + 1},
        )
    }
    assert len(hashes) == 5
    assert weights_sha256({"a": tensor, "b": tensor}) == weights_sha256({"b": tensor, "a": tensor})
