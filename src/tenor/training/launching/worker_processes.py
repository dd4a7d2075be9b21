"""Local worker processes, which start together, are watched together and end together."""

from __future__ import annotations

import contextlib
import json
import os
import selectors
import signal
import subprocess
import sys
import time
from collections.abc import Generator, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import FrameType
from typing import IO, Any

from tenor.errors import TenorError, WorkerError
from tenor.threads import is_busy, waiting_variables
from tenor.training.launching.hosts import ADDRESS, NetworkHost
from tenor.training.launching.stopped_workers import StoppedWorkers, process_state

GRACE_SECONDS = 20.0  # for the other workers to leave by themselves after a failure or a signal


@dataclass(frozen=True)
class WorkerFailure:
    """The worker that failed first, and how."""

    rank: int
    name: str
    returncode: int | None  # None: the process still exists but does not answer
    last_words: str = ""  # last line of its standard error
    state: str = ""

    def as_error(self) -> WorkerError:
        how = f"exit code {self.returncode}"
        if self.returncode is None:
            how = f"no answer until the time-out; it is {self.state or 'still running'}"
        elif self.returncode < 0:
            how = f"killed by {signal.Signals(-self.returncode).name}"
        message = f": {self.last_words}" if self.last_words else ""
        return WorkerError(
            f"{self.name} on {os.uname().nodename} failed ({how}){message}",
            remedy="continue from the last checkpoint with --resume, or restart automatically with --max-restarts",
        )


class WorkerProcesses:
    """`size` processes, one per rank, that find each other through a file in the scratch folder.

    Used as a context manager: entering starts the processes, leaving ends them.
    """

    def __init__(self, scratch: Path, size: int, threads: int, timeout: float, lock: int | None = None) -> None:
        self.scratch, self.size, self.threads, self.timeout = scratch, size, threads, timeout
        self.inherited = () if lock is None else (lock,)  # workers that briefly outlive us hold the lock too
        self.processes: list[subprocess.Popen[bytes]] = []
        self.failure: WorkerFailure | None = None
        self._previous: dict[int, Any] = {}  # signal handlers to restore
        self.signal = 0  # the signal that asked us to stop
        self._stopped = StoppedWorkers(self.processes, self.name, self.consequence)
        self.num_replaced = 0  # workers started in place of killed ones
        self.hosts: Sequence[NetworkHost] = ()  # by rank; empty: all processes share this host

    def __enter__(self) -> WorkerProcesses:
        self._waiting = waiting_variables(os.environ, self.threads > 1 and is_busy(self.size * self.threads))
        for rank in range(self.size):
            self.processes.append(self._start(rank))
        for number in (signal.SIGTERM, signal.SIGINT):
            with contextlib.suppress(ValueError):  # not the main thread: the caller handles signals
                self._previous[number] = signal.signal(number, self._forward)
        return self

    def __exit__(self, *_: object) -> None:
        for number, handler in self._previous.items():
            signal.signal(number, handler)
        for process in self.processes:
            process.kill()
            process.wait()
            for stream in (process.stdin, process.stdout):
                if stream is not None:
                    with contextlib.suppress(OSError):
                        stream.close()

    def _start(self, rank: int) -> subprocess.Popen[bytes]:
        words = [sys.executable, "-m", "tenor.training.launching.worker", str(self.scratch / "job.json")]
        with self._error_output(rank).open("wb") as errors:
            return subprocess.Popen(
                self.hosts[rank].command(words) if self.hosts else words,
                stdin=subprocess.PIPE,  # it closes when we end, and then the worker ends too
                stdout=subprocess.PIPE if rank == 0 else subprocess.DEVNULL,
                stderr=errors,
                env=self._environment(rank),
                pass_fds=self.inherited,
                start_new_session=True,  # so that Ctrl-C reaches the workers once, through us
            )

    def _environment(self, rank: int) -> dict[str, str]:
        return {
            **os.environ,
            **self._waiting,
            "TENOR_RANK": str(rank),
            "TENOR_WORLD_SIZE": str(self.size),
            "TENOR_RENDEZVOUS": f"file://{self.scratch}/rendezvous",
            "OMP_NUM_THREADS": str(self.threads),
            **({ADDRESS: self.hosts[rank].address} if self.hosts else {}),
            "PYTHONPATH": os.pathsep.join(filter(None, sys.path)),
        }

    def name(self, rank: int) -> str:
        """How messages call the process."""
        return f"worker {rank}"

    def consequence(self, rank: int) -> str:
        """What happens if the process stays stopped."""
        return "after --timeout it counts as lost"

    def is_needed(self, rank: int) -> bool:
        """Whether the others cannot continue without this process."""
        return True

    def _error_output(self, rank: int) -> Path:
        return self.scratch / f"stderr-{rank}"

    def _forward(self, number: int, _: FrameType | None) -> None:
        self.signal = number
        for process in self.processes:
            if process.poll() is None:
                process.send_signal(number)

    def events(self) -> Iterator[bytes]:
        """The lines that rank 0 writes, until all workers have left or one has failed."""
        stream = self.processes[0].stdout
        assert stream is not None
        os.set_blocking(stream.fileno(), False)
        rest = b""
        with selectors.DefaultSelector() as selector:
            selector.register(stream, selectors.EVENT_READ)
            while self._is_running() and not self._is_held_up():
                yield from self._stopped.look()
                if selector.select(timeout=0.1):
                    rest = yield from _whole_lines(rest + _drain(stream))
        yield from _whole_lines(rest + _drain(stream))

    def _is_running(self) -> bool:
        codes = [process.poll() for process in self.processes]
        failed = [rank for rank, code in enumerate(codes) if code]
        if failed:
            self._note_failure(failed)
            return False
        return any(code is None for code in codes)

    def _is_held_up(self) -> bool:
        """Whether stopped workers hold up the run.

        That is so if we were asked to end and a stopped worker is needed for that, or if all workers have been stopped
        for longer than the time-out, because then no worker is left to notice.
        """
        is_asked = self.signal != 0 and any(map(self.is_needed, self._stopped.ranks))
        is_held_up = is_asked or self._stopped.seconds_since_all_stopped() > self.timeout
        if is_held_up:
            self._note_failure(self._stopped.unresponsive())
        return is_held_up

    def _note_failure(self, failed: list[int]) -> None:
        """Wait until the other workers notice, then blame a killed worker before those that lost contact with it."""
        deadline = time.monotonic() + (GRACE_SECONDS if self.signal else 2.0)
        while time.monotonic() < deadline and any(process.poll() is None for process in self.processes):
            time.sleep(0.02)
        codes = {rank: code for rank, process in enumerate(self.processes) if (code := process.poll())}
        killed = [rank for rank in codes if codes[rank] < 0]
        crashed = [rank for rank in codes if self.error_of(rank) is None]
        unresponsive = self._stopped.unresponsive() if all(map(self._lost_contact, codes)) else []
        rank = next(iter([*killed, *crashed, *unresponsive, *failed]))
        state = process_state(self.processes[rank].pid)
        words = _last_line(self._error_output(rank))
        self.failure = WorkerFailure(rank, self.name(rank), codes.get(rank), words, state)

    def error_of(self, rank: int) -> TenorError | None:
        """The error that a worker wrote down before it left; None if there is none, or only a part of it."""
        try:
            return TenorError.from_dict(json.loads((self.scratch / f"error-{rank}.json").read_text("utf-8")))
        except (FileNotFoundError, ValueError):
            return None

    def _lost_contact(self, rank: int) -> bool:
        """Whether a worker left because another one did not answer."""
        return isinstance(self.error_of(rank), WorkerError)


def _drain(stream: IO[bytes]) -> bytes:
    return stream.read() or b""


def _whole_lines(data: bytes) -> Generator[bytes, None, bytes]:
    *lines, rest = data.split(b"\n")
    yield from lines
    return rest


def _last_line(file: Path) -> str:
    lines = [line for line in file.read_text("utf-8", "replace").splitlines() if line.strip()]
    return lines[-1].strip() if lines else ""
