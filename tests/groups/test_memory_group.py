"""Sums through shared memory compared with numpy, with real processes."""

from __future__ import annotations

import atexit
import os
import sys
import time
from pathlib import Path

import numpy as np
import pytest
import torch
from helpers.workers import spawn_workers

from tenor.errors import WorkerError
from tenor.groups.memory import SLOT_BYTES, SLOTS, MemoryGroup, can_share_memory
from tenor.world import World

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="shared memory without a name is Linux's")
NUM_WORKERS = 3
DOUBLES = SLOT_BYTES // 8  # per slot
SIZES = [1, 7, DOUBLES, DOUBLES + 1, 2 * SLOTS * DOUBLES + 3, 0, 5]  # in doubles; one fills all slots twice


def _world(folder: str) -> World:
    rank = int(os.environ["RANK"])
    return World(rank, NUM_WORKERS, rank, NUM_WORKERS, rendezvous=f"file://{folder}/meeting")


def _part(rank: int, index: int, count: int) -> np.ndarray:
    return np.random.default_rng([rank, index]).standard_normal(count)


def add_up(folder: str) -> list[bool]:
    """Start all sums at once and wait for them in order; then one by one, with workers that are late."""
    torch.set_num_threads(1)
    group, agreed = MemoryGroup(_world(folder), 60.0), []
    tensors = [torch.from_numpy(_part(group.rank, index, count)) for index, count in enumerate(SIZES)]
    pending = [group.start_sum(tensor) for tensor in tensors]
    for index, (tensor, sum_) in enumerate(zip(tensors, pending, strict=True)):
        sum_.wait()
        expected = sum(_part(rank, index, SIZES[index]) for rank in range(NUM_WORKERS))
        agreed.append(bool(np.array_equal(tensor.numpy(), expected)))
    for turn in range(2 * SLOTS):
        if turn % NUM_WORKERS == group.rank:
            time.sleep(0.01)
        few = torch.full((4,), float(group.rank + turn), dtype=torch.bfloat16)
        group.start_sum(few).wait()
        agreed.append(few.tolist() == [3.0 * turn + 3.0] * 4)
    gathered = group.gather(torch.arange(group.rank + 1))
    part = group.split(min(group.rank, 1))  # the first worker alone, the others together
    of_part = part.gather(torch.tensor([group.rank]))
    group.close()
    expected_part = [0] if group.rank == 0 else [1, 2]
    return [*agreed, gathered.tolist() == [0, 0, 1, 0, 1, 2], of_part.tolist() == expected_part]


def start_before_the_others(folder: str) -> bool:
    """The first worker starts more sums than the slots hold; the others begin only after that."""
    torch.set_num_threads(1)
    group, started = MemoryGroup(_world(folder), 60.0), Path(folder) / "started"
    tensors = [torch.full((3 * SLOT_BYTES // 4,), float(group.rank + turn)) for turn in range(SLOTS)]
    until = time.monotonic() + 20
    while group.rank and not started.exists() and time.monotonic() < until:
        time.sleep(0.01)
    was_free = group.rank == 0 or started.exists()
    pending = [group.start_sum(tensor) for tensor in tensors]
    started.touch()
    for sum_ in reversed(pending):
        sum_.wait()
    group.close()
    return was_free and all((tensor == 3.0 * turn + 3.0).all() for turn, tensor in enumerate(tensors))


def lose_one(folder: str) -> str:
    """The last worker exits without a message while the others wait for it."""
    group = MemoryGroup(_world(folder), 60.0)
    atexit.register(os._exit, 0)  # gloo's threads abort a process that ends with its peers gone
    if group.rank == NUM_WORKERS - 1:
        return "left"
    try:
        group.start_sum(torch.ones(3)).wait()
    except WorkerError as error:
        return str(error)
    return "nothing noticed"


def add_up_and_start(folders: list[str]) -> tuple[list[bool], bool]:
    return add_up(folders[0]), start_before_the_others(folders[1])


@pytest.fixture(scope="module")
def found(tmp_path_factory: pytest.TempPathFactory) -> list[tuple[list[bool], bool]]:
    """The results of both functions by rank, from processes that are started only once."""
    folders = [str(tmp_path_factory.mktemp(name)) for name in ("sums", "starts")]
    return spawn_workers(NUM_WORKERS, f"{__file__}:add_up_and_start", folders=folders)


def test_sums_equal_numpy_in_the_order_of_ranks(found: list[tuple[list[bool], bool]]) -> None:
    for agreed, _ in found:
        assert agreed == [True] * len(agreed) and len(agreed) == len(SIZES) + 2 * SLOTS + 2


def test_starting_a_sum_does_not_wait(found: list[tuple[list[bool], bool]]) -> None:
    """Otherwise a fast worker would wait in its backward pass, and the time would count as computing."""
    assert all(was_free for _, was_free in found)


def test_a_worker_that_is_gone_is_named(tmp_path: Path) -> None:
    *others, _ = spawn_workers(NUM_WORKERS, f"{__file__}:lose_one", folder=str(tmp_path))
    assert all("worker 2 is gone" in said for said in others)


def test_only_local_workers_share_memory() -> None:
    assert not can_share_memory(World(0, 2, 0, 2, launcher="torchrun", rendezvous="tcp://127.0.0.1:1"))
