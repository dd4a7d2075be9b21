"""Local processes of a parameter server: rank 0 serves, the others compute and are replaced when they are killed."""

from __future__ import annotations

import contextlib
import json
import signal
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

from tenor.training.processes import GRACE_SECONDS, Workers
from tenor.training.stopped import process_state


class ServedWorkers(Workers):
    """What a lost worker had in its hands the server grants to others, so its successor starts with nothing. A worker
    that fails by an error of its own would fail again: that ends the run, as the loss of the server does."""

    def __init__(self, scratch: Path, num_workers: int, threads: int, timeout: float, most: int) -> None:
        super().__init__(scratch, num_workers + 1, threads, timeout)
        self.most = most  # that may be replaced
        self._news: list[bytes] = []

    def name(self, rank: int) -> str:
        return f"worker {rank - 1}" if rank else "the parameter server"

    def outlook(self, rank: int) -> str:
        return "the others do its work meanwhile" if rank else super().outlook(rank)

    def is_needed(self, rank: int) -> bool:
        return rank == 0

    def events(self) -> Iterator[bytes]:
        for event in super().events():
            yield from self._take_news()
            yield event
        yield from self._take_news()

    def _take_news(self) -> Iterator[bytes]:
        while self._news:
            yield self._news.pop(0)

    def _is_running(self) -> bool:
        server, *codes = [process.poll() for process in self.processes]
        if server is not None:
            self._let_go(server)
            return False
        for rank, code in enumerate(codes, start=1):
            if code is not None and code < 0 and self.replaced < self.most:
                self._replace(rank, -code)
            elif code:
                self._note_failure([rank])
                return False
        return True

    def _let_go(self, server: int) -> None:
        """The server is done: its workers leave by themselves, but for those who were stopped."""
        if server:
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
        self.replaced += 1
        self.processes[rank] = self._start(rank)
        how = f"{self.name(rank)} was killed by {signal.Signals(number).name}"
        message = f"{how}; replaced ({self.replaced} of {self.most})"
        self._news.append(json.dumps({"event": "warning", "message": message}).encode())
