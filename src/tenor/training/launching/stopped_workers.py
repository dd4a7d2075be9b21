"""Find worker processes that exist but do not answer because a signal has stopped them (SIGSTOP).

A stopped process cannot report this itself, and its peers only notice silence. The launcher reads the state of each
process, names a stopped one at once, and blames it when the time-out of the others has passed. If all workers are
stopped, the launcher applies the time-out itself.
"""

from __future__ import annotations

import json
import subprocess
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

SECONDS_BETWEEN_LOOKS = 1.0


class StoppedWorkers:
    """Watches processes for stops.

    Args:
        processes: The processes in order of rank; the list may still grow.
        name: How messages call the process of a rank.
        consequence: What happens if the process of a rank stays stopped.
    """

    def __init__(
        self,
        processes: Sequence[subprocess.Popen[bytes]],
        name: Callable[[int], str],
        consequence: Callable[[int], str],
    ) -> None:
        self.processes, self.name, self.consequence = processes, name, consequence
        self._since: dict[int, float] = {}  # rank → when it was first seen stopped
        self._next_look = 0.0

    def look(self) -> Iterator[bytes]:
        """A warning event, as a line of JSON, for every worker that has stopped or continued since the last look."""
        if time.monotonic() < self._next_look:
            return
        now = time.monotonic()
        self._next_look = now + SECONDS_BETWEEN_LOOKS
        stopped = {rank for rank in self._alive() if process_state(self.processes[rank].pid) == "stopped"}
        for rank in sorted(stopped - self._since.keys()):
            yield _warning(f"{self.name(rank)} is stopped (SIGSTOP); {self.consequence(rank)}")
        for rank in sorted(self._since.keys() - stopped):
            yield _warning(f"{self.name(rank)} continues")
        self._since = {rank: self._since.get(rank, now) for rank in stopped}

    @property
    def ranks(self) -> set[int]:
        """The ranks that were stopped at the last look."""
        return set(self._since)

    def seconds_since_all_stopped(self) -> float:
        """How long all workers have been stopped; 0 if at least one is not."""
        alive = self._alive()
        if not alive or not self.ranks >= set(alive):
            return 0.0
        return time.monotonic() - max(self._since[rank] for rank in alive)

    def unresponsive(self) -> list[int]:
        """The ranks that have not ended, stopped ones first, because those cannot be waiting for another worker."""
        return sorted(self._alive(), key=lambda rank: process_state(self.processes[rank].pid) != "stopped")

    def _alive(self) -> list[int]:
        return [rank for rank, process in enumerate(self.processes) if process.poll() is None]


def process_state(pid: int) -> str:
    """`stopped`, or an empty string if the process runs or the system does not say (only Linux does)."""
    try:
        status = Path(f"/proc/{pid}/stat").read_text("utf-8", "replace")
    except OSError:
        return ""
    return "stopped" if status.rpartition(")")[2].split()[0] in ("T", "t") else ""


def _warning(message: str) -> bytes:
    return json.dumps({"event": "warning", "message": message}).encode()
