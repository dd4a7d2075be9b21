"""Starts services on loopback for a measurement, and looks at them from outside: health, memory, slow clients."""

from __future__ import annotations

import contextlib
import os
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from tenor.errors import WorkerError

_START_SECONDS = 120.0
_PAGE = os.sysconf("SC_PAGE_SIZE") if hasattr(os, "sysconf") else 4096


@dataclass(frozen=True)
class RunningService:
    """A service that has answered."""

    process: int
    port: int

    def health_seconds(self) -> float:
        """How long /healthz takes, over a new connection."""
        began = time.perf_counter()
        with urllib.request.urlopen(f"http://127.0.0.1:{self.port}/healthz", timeout=30) as answer:
            answer.read()
        return time.perf_counter() - began

    def memory_bytes(self) -> int:
        """The memory of the process and its children; 0 where the system does not tell."""
        return sum(_resident(process) for process in family(self.process))

    def cpu_seconds(self) -> float:
        """The processor time of the process and its children; 0 where the system does not tell."""
        return sum(map(_processor_seconds, family(self.process)))


@contextlib.contextmanager
def running_service(module: str, words: Sequence[str]) -> Iterator[RunningService]:
    """Run `python -m MODULE WORDS` with `{port}` in the words replaced by a free port.

    Raises:
        WorkerError: The service does not answer.
    """
    port = free_port()
    command = [sys.executable, "-m", module, *(word.format(port=port) for word in words)]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
    process = subprocess.Popen(command, env=environment, stdout=subprocess.DEVNULL)
    service = RunningService(process.pid, port)
    try:
        _await_health(service, process)
        yield service
    finally:
        process.terminate()
        try:
            process.wait(15)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


def free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        return int(taken.getsockname()[1])


@contextlib.contextmanager
def slow_clients(port: int, count: int) -> Iterator[None]:
    """Hold `count` connections open that have sent a part of a request's head."""
    with contextlib.ExitStack() as stack:
        for _ in range(count):
            client = stack.enter_context(socket.create_connection(("127.0.0.1", port), timeout=30))
            client.sendall(b"GET /healthz HTTP/1.1\r\nHost: slow\r\nX-Slow: ")
        yield


def family(process: int) -> list[int]:
    """A process and its descendants (Linux only; elsewhere the process alone)."""
    found = [process]
    for parent in found:
        with contextlib.suppress(OSError):
            for file in Path(f"/proc/{parent}/task").glob("*/children"):
                found += [int(word) for word in file.read_text("ascii").split()]
    return found


def _resident(process: int) -> int:
    try:
        return int(Path(f"/proc/{process}/statm").read_text("ascii").split()[1]) * _PAGE
    except OSError:
        return 0


def _processor_seconds(process: int) -> float:
    try:
        ticks = Path(f"/proc/{process}/stat").read_text("ascii", "replace").rpartition(")")[2].split()[11:13]
    except OSError:
        return 0.0
    return sum(map(int, ticks)) / os.sysconf("SC_CLK_TCK")


def _await_health(service: RunningService, process: subprocess.Popen[bytes]) -> None:
    end = time.monotonic() + _START_SECONDS
    while time.monotonic() < end and process.poll() is None:
        with contextlib.suppress(urllib.error.URLError, OSError):
            service.health_seconds()
            return
        time.sleep(0.1)
    raise WorkerError("the service to measure has not started", remedy="its reason is above")
