"""Local processes of a run with a parameter server: rank 0 is the server, killed workers are replaced."""

from __future__ import annotations

import contextlib
import json
import signal
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

from tenor.training.launching.stopped_workers import process_state
from tenor.training.launching.worker_processes import GRACE_SECONDS, WorkerProcesses


class ParameterServerProcesses(WorkerProcesses):
    """A server process and `num_workers` workers.

    A killed worker is replaced. The server gives the killed worker's leases to others, so the new worker starts without
    any. The run ends if the server is lost, or if a worker fails with an error of its own, which would happen again.
    """

    def __init__(
        self,
        scratch: Path,
        num_workers: int,
        threads: int,
        timeout: float,
        lock: int | None,
        max_replacements: int,
    ) -> None:
        super().__init__(scratch, num_workers + 1, threads, timeout, lock)
        self.max_replacements = max_replacements
        self._warnings: list[bytes] = []

    def name(self, rank: int) -> str:
        return f"worker {rank - 1}" if rank else "the parameter server"

    def consequence(self, rank: int) -> str:
        return "the others do its work meanwhile" if rank else super().consequence(rank)

    def is_needed(self, rank: int) -> bool:
        return rank == 0

    def events(self) -> Iterator[bytes]:
        for event in super().events():
            yield from self._take_warnings()
            yield event
        yield from self._take_warnings()

    def _take_warnings(self) -> Iterator[bytes]:
        while self._warnings:
            yield self._warnings.pop(0)

    def _is_running(self) -> bool:
        server, *codes = [process.poll() for process in self.processes]
        if server is not None:
            self._wait_for_workers(server)
            return False
        for rank, code in enumerate(codes, start=1):
            if code is not None and code < 0 and self.num_replaced < self.max_replacements:
                self._replace(rank, -code)
            elif code:
                self._note_failure([rank])
                return False
        return True

    def _wait_for_workers(self, server_code: int) -> None:
        """The server has ended: wait until its workers have left too, except stopped ones."""
        if server_code:
            self._note_failure([0])
        until = time.monotonic() + GRACE_SECONDS
        while time.monotonic() < until and any(map(self._may_leave, self.processes)):
            time.sleep(0.02)

    def _may_leave(self, process: subprocess.Popen[bytes]) -> bool:
        return process.poll() is None and process_state(process.pid) != "stopped"

    def _replace(self, rank: int, number: int) -> None:
        old = self.processes[rank]
        if old.stdin is not None:
            with contextlib.suppress(OSError):
                old.stdin.close()
        self.num_replaced += 1
        self.processes[rank] = self._start(rank)
        how = f"{self.name(rank)} was killed by {signal.Signals(number).name}"
        message = f"{how}; replaced ({self.num_replaced} of {self.max_replacements})"
        self._warnings.append(json.dumps({"event": "warning", "message": message}).encode())
