"""Workers that are there but do not answer: stopped by a signal, or hung.

A stopped process cannot say so itself, and its peers only see silence. The launcher sees its state, names it at once,
and blames it when the others' time-out is over; where no other is left to wait for it, the launcher's own.
"""

from __future__ import annotations

import json
import subprocess
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

SECONDS_BETWEEN_LOOKS = 1.0


class StoppedWatch:
    """Looks after processes in order of rank; the list may still grow."""

    def __init__(
        self,
        processes: Sequence[subprocess.Popen[bytes]],
        name: Callable[[int], str],
        outlook: Callable[[int], str],  # what becomes of one that stays silent
    ) -> None:
        self.processes, self.name, self.outlook = processes, name, outlook
        self._since: dict[int, float] = {}  # when each that is stopped was first seen so
        self._next_look = 0.0

    def look(self) -> Iterator[bytes]:
        """An event, as a line of JSON, for every worker that was stopped or goes on since the last look."""
        if time.monotonic() < self._next_look:
            return
        now = time.monotonic()
        self._next_look = now + SECONDS_BETWEEN_LOOKS
        stopped = {rank for rank in self._alive() if process_state(self.processes[rank].pid) == "stopped"}
        for rank in sorted(stopped - self._since.keys()):
            yield _warning(f"{self.name(rank)} is stopped (SIGSTOP); {self.outlook(rank)}")
        for rank in sorted(self._since.keys() - stopped):
            yield _warning(f"{self.name(rank)} goes on")
        self._since = {rank: self._since.get(rank, now) for rank in stopped}

    @property
    def stopped(self) -> set[int]:
        """By the last look."""
        return set(self._since)

    def seconds_since_all_stopped(self) -> float:
        """0 while a worker is left that is not."""
        alive = self._alive()
        if not alive or not self.stopped >= set(alive):
            return 0.0
        return time.monotonic() - max(self._since[rank] for rank in alive)

    def silent(self) -> list[int]:
        """The workers still there; stopped ones first, since those cannot be waiting for somebody else."""
        return sorted(self._alive(), key=lambda rank: process_state(self.processes[rank].pid) != "stopped")

    def _alive(self) -> list[int]:
        return [rank for rank, process in enumerate(self.processes) if process.poll() is None]


def process_state(pid: int) -> str:
    """`stopped`, or nothing where the process runs or the system does not tell (Linux does)."""
    try:
        status = Path(f"/proc/{pid}/stat").read_text("utf-8", "replace")
    except OSError:
        return ""
    return "stopped" if status.rpartition(")")[2].split()[0] in ("T", "t") else ""


def _warning(message: str) -> bytes:
    return json.dumps({"event": "warning", "message": message}).encode()
