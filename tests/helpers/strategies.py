"""The part of one rank in the contract suite: several short runs in one process, to pay for its start only once."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import psutil
import torch

import tenor
from tenor.errors import Stopped
from tenor.training.assemble import train_as
from tenor.training.job import TrainingJob
from tenor.training.recipe import complete
from tenor.training.traits import owners_of
from tenor.world import World, detect

POINTS = complete(
    tenor.TrainSettings(task="points", hidden=64, batch_size=256, lr=0.02, epochs=6, threads=1, keep="last"), None
)
SHORT = 40  # steps


def points(**changes: Any) -> tenor.TrainSettings:
    """Return the settings for the points task; strategies that synchronise at intervals do so every 8 steps."""
    own = {"sync_every": 8} if changes.get("strategy") in owners_of("sync_every") else {}
    return replace(POINTS, **{**own, **changes})


def world(meeting: Path) -> World:
    if "OMPI_COMM_WORLD_RANK" in os.environ:
        return detect()
    rank, size = int(os.environ.get("RANK", "0")), int(os.environ.get("WORLD_SIZE", "1"))
    return World(rank, size, rank, size, rendezvous=f"file://{meeting}" if size > 1 else "")


def train_here(out: Path, settings: tenor.TrainSettings, data: str = "points", **more: Any) -> dict[str, Any]:
    """Train in this process as the rank given by the environment."""
    out.mkdir(parents=True, exist_ok=True)
    meeting = out / f"meeting-{more.get('resume', False)}" / "rendezvous"
    meeting.parent.mkdir(exist_ok=True)
    job = TrainingJob(data, str(out), settings, more.get("resume", False))
    return train_as(world(meeting), job, lambda event: None, more.get("signalled", lambda: 0))


def train_rank(out: str, data: str = "points", resume: bool = False, **changes: Any) -> dict[str, Any]:
    """Make one training run; a target for `spawn_workers`."""
    torch.set_num_threads(1)
    try:
        return train_here(Path(out), points(**changes), data, resume=resume)
    finally:
        torch.set_default_dtype(torch.float32)


def stop_rank(out: str, **changes: Any) -> int:
    """Make a run that a signal to the last rank stops; return the signal's number after the checkpoint is saved."""
    torch.set_num_threads(1)
    try:
        train_here(Path(out), points(**changes), signalled=_signal_after(21))
    except Stopped as error:
        return error.signal
    return 0


def run_contract(strategy: str, folder: str, changes: dict[str, Any]) -> dict[str, Any]:
    """Train to the end, make a short run twice, then stop the short run by a signal to the last rank and resume it."""
    torch.set_num_threads(1)
    base, place = points(strategy=strategy, **changes), Path(folder)
    short = replace(base, max_steps=SHORT)
    listening: set[str] = set()
    whole = train_here(place / "whole", base, signalled=_look_for_listeners(listening))
    first, again = (train_here(place / name, short) for name in ("first", "again"))
    try:
        after = 5 if strategy == "async" else 21  # with a parameter server, a worker takes part in only some steps
        train_here(place / "stopped", short, signalled=_signal_after(after))
        stopped = 0
    except Stopped as error:
        stopped = error.signal
        if torch.distributed.is_initialized():
            torch.distributed.destroy_process_group()
    _wait_for_all(place / "all-stopped")  # rank 0 may still be writing the checkpoint
    resumed = train_here(place / "stopped", short, resume=True)
    runs = {"whole": whole, "first": first, "again": again, "resumed": resumed}
    return {**runs, "stopped": stopped, "listening": sorted(listening)}


def _wait_for_all(folder: Path, timeout: float = 60.0) -> None:
    """Return once every rank has called this function with this folder."""
    here = world(Path())
    folder.mkdir(exist_ok=True)
    (folder / str(here.rank)).touch()
    until = time.monotonic() + timeout
    while len(list(folder.iterdir())) < here.size:
        assert time.monotonic() < until, "a rank did not stop"
        time.sleep(0.02)


def _look_for_listeners(found: set[str]) -> Callable[[], int]:
    def look() -> int:
        if len(found) == 0:
            connections = psutil.Process().net_connections("inet")
            found.update(c.laddr.ip for c in connections if c.status == psutil.CONN_LISTEN)
            found.add("looked")
        return 0

    return look


def _signal_after(step: int) -> Callable[[], int]:
    """Simulate a signal that only the last rank receives, in that step and every later one."""
    here = world(Path())
    is_last = here.rank == here.size - 1
    seen = iter(range(1, 100_000))
    return lambda: signal.SIGTERM if next(seen) >= step and is_last else 0
