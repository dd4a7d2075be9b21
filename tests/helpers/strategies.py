"""What one rank does in the contract suite: several short runs in one process, so that it starts only once."""

from __future__ import annotations

import os
import signal
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import psutil
import torch

import tenor
from tenor.errors import Stopped
from tenor.settings import owned
from tenor.training.job import Job
from tenor.training.rank import train_as
from tenor.world import World, detect

POINTS = tenor.TrainSettings(task="points", hidden=64, batch_size=256, lr=0.02, epochs=6, threads=1, keep="last")
SHORT = 40  # steps


def points(**changes: Any) -> tenor.TrainSettings:
    """Short steps apart for those strategies that make any."""
    own = {"sync_every": 8} if changes.get("strategy") in owned(tenor.TrainSettings)["sync_every"] else {}
    return replace(POINTS, **{**own, **changes})


def world(meeting: Path) -> World:
    if "OMPI_COMM_WORLD_RANK" in os.environ:
        return detect()
    rank, size = int(os.environ.get("RANK", "0")), int(os.environ.get("WORLD_SIZE", "1"))
    return World(rank, size, rank, size, rendezvous=f"file://{meeting}" if size > 1 else "")


def train_here(out: Path, settings: tenor.TrainSettings, data: str = "points", **more: Any) -> dict[str, Any]:
    """Train as the rank that the environment names, in this process."""
    out.mkdir(parents=True, exist_ok=True)
    meeting = out / f"meeting-{more.get('resume', False)}" / "rendezvous"
    meeting.parent.mkdir(exist_ok=True)
    job = Job(data, str(out), settings, more.get("resume", False))
    return train_as(world(meeting), job, lambda event: None, more.get("signalled", lambda: 0))


def train_rank(out: str, data: str = "points", resume: bool = False, **changes: Any) -> dict[str, Any]:
    """One run; the target of `spawn_workers`."""
    torch.set_num_threads(1)
    try:
        return train_here(Path(out), points(**changes), data, resume=resume)
    finally:
        torch.set_default_dtype(torch.float32)


def stop_rank(out: str, **changes: Any) -> int:
    """A run that a signal to the last rank stops; the signal's number, once a checkpoint is saved."""
    torch.set_num_threads(1)
    try:
        train_here(Path(out), points(**changes), signalled=_signal_after(21))
    except Stopped as error:
        return error.signal
    return 0


def run_contract(strategy: str, folder: str, changes: dict[str, Any]) -> dict[str, Any]:
    """Train to the end; a short run twice; the same stopped by a signal to the last rank, and resumed."""
    torch.set_num_threads(1)
    base, place = points(strategy=strategy, **changes), Path(folder)
    short = replace(base, max_steps=SHORT)
    listening: set[str] = set()
    whole = train_here(place / "whole", base, signalled=_look_for_listeners(listening))
    first, again = (train_here(place / name, short) for name in ("first", "again"))
    try:
        after = 5 if strategy == "async" else 21  # a worker of a server takes part in some steps only
        train_here(place / "stopped", short, signalled=_signal_after(after))
        stopped = 0
    except Stopped as error:
        stopped = error.signal
        if torch.distributed.is_initialized():
            torch.distributed.destroy_process_group()
    resumed = train_here(place / "stopped", short, resume=True)
    runs = {"whole": whole, "first": first, "again": again, "resumed": resumed}
    return {**runs, "stopped": stopped, "listening": sorted(listening)}


def _look_for_listeners(found: set[str]) -> Callable[[], int]:
    def look() -> int:
        if len(found) == 0:
            connections = psutil.Process().net_connections("inet")
            found.update(c.laddr.ip for c in connections if c.status == psutil.CONN_LISTEN)
            found.add("looked")
        return 0

    return look


def _signal_after(step: int) -> Callable[[], int]:
    """A signal that the last rank alone is sent during a step, and remembers as a real one would be."""
    here = world(Path())
    is_last = here.rank == here.size - 1
    seen = iter(range(1, 100_000))
    return lambda: signal.SIGTERM if next(seen) >= step and is_last else 0
