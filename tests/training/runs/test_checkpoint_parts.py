"""Checkpoints in parts: several ranks save at the same time, one index lists the parts."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from threading import Barrier

import pytest
import torch
from torch import Tensor

from tenor.groups import Alone
from tenor.training.runs.checkpoint import Checkpoint, newest_checkpoint, save_checkpoint


class Seat(Alone):
    """One of two ranks, each a thread of this process."""

    size = 2

    def __init__(self, rank: int, table: dict[int, Tensor], both: Barrier) -> None:
        self.rank, self.table, self.both = rank, table, both  # type: ignore[misc]

    def gather(self, values: Tensor) -> Tensor:
        self.table[self.rank] = values
        self.both.wait(10)
        return torch.cat([self.table[0], self.table[1]])


def make(step: int, rank: int) -> Checkpoint:
    return Checkpoint(step, {f"weights/{rank}": torch.full((7,), step + rank / 10)}, {"epoch": step, "of": rank})


def save(folder: Path, step: int, change: Callable[[Checkpoint], None] = lambda saved: None) -> list[str]:
    """Save with both ranks, after `change` was applied to the second part. Returns the errors of the ranks."""
    table: dict[int, Tensor] = {}
    both = Barrier(2)

    def one(rank: int) -> str:
        checkpoint = make(step, rank)
        if rank == 1:
            change(checkpoint)
        try:
            save_checkpoint(folder, checkpoint, 2, Seat(rank, table, both))
        except (OSError, ValueError) as error:
            return str(error)
        return ""

    with ThreadPoolExecutor(2) as pool:
        return list(pool.map(one, range(2)))


def test_parts_are_loaded_as_one_and_old_ones_go(tmp_path: Path) -> None:
    for step in (1, 2, 3):
        assert save(tmp_path, step) == ["", ""]
    endings = ("json", "part-1.safetensors", "safetensors")
    assert sorted(path.name for path in tmp_path.iterdir()) == [
        f"step-000000000{step}.{ending}" for step in (2, 3) for ending in endings
    ]
    found, refused = newest_checkpoint(tmp_path)
    assert found is not None and not refused
    assert (found.step, found.values) == (3, {"epoch": 3, "of": 0})
    for rank in range(2):
        assert torch.equal(found.tensors[f"weights/{rank}"], make(3, rank).tensors[f"weights/{rank}"])


@pytest.mark.parametrize("rank", [0, 1])
@pytest.mark.parametrize("damage", ["flip", "drop", "older"])
def test_a_damaged_part_is_noticed(tmp_path: Path, rank: int, damage: str) -> None:
    for step in (1, 2):
        save(tmp_path, step)
    name = "part-1.safetensors" if rank else "safetensors"
    file = tmp_path / f"step-0000000002.{name}"
    if damage == "drop":
        file.unlink()
    else:
        older = (tmp_path / f"step-0000000001.{name}").read_bytes()
        file.write_bytes(older if damage == "older" else file.read_bytes()[:-1] + b"\x01")
    found, refused = newest_checkpoint(tmp_path)
    assert found is not None and found.step == 1 and len(refused) == 1


def test_a_part_that_cannot_be_saved_leaves_no_checkpoint(tmp_path: Path) -> None:
    save(tmp_path, 1)
    assert save(tmp_path, 2, lambda saved: saved.tensors["weights/1"].fill_(torch.nan)) == [
        "worker 1 did not save its part",
        "weights are not finite",
    ]
    found, refused = newest_checkpoint(tmp_path)
    assert found is not None and found.step == 1 and not refused
