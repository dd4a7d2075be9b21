"""Local worker processes: started together, watched together, ended together."""

from __future__ import annotations

import contextlib
import json
import os
import selectors
import signal
import subprocess
import sys
import time
from collections.abc import Generator, Iterator
from dataclasses import dataclass
from pathlib import Path
from types import FrameType
from typing import IO, Any

from tenor.errors import WorkerError
from tenor.training.stopped import StoppedWatch, process_state

GRACE_SECONDS = 20.0  # for the rest to leave by themselves once one has failed or a signal came


@dataclass(frozen=True)
class Failure:
    """The worker that failed first, and how."""

    rank: int
    name: str
    returncode: int | None  # None: it is still there but gave no answer
    last_words: str = ""
    state: str = ""

    def as_error(self) -> WorkerError:
        how = f"exit code {self.returncode}"
        if self.returncode is None:
            how = f"no answer until the time-out; it is {self.state or 'still running'}"
        elif self.returncode < 0:
            how = f"killed by {signal.Signals(-self.returncode).name}"
        said = f": {self.last_words}" if self.last_words else ""
        return WorkerError(
            f"{self.name} on {os.uname().nodename} failed ({how}){said}",
            remedy="go on from the last checkpoint with --resume, or let --max-restarts do it",
        )


class Workers:
    """`size` processes with a rank each, meeting at a file in the scratch folder. Use with `with`."""

    def __init__(self, scratch: Path, size: int, threads: int, timeout: float) -> None:
        self.scratch, self.size, self.threads, self.timeout = scratch, size, threads, timeout
        self.processes: list[subprocess.Popen[bytes]] = []
        self.failed: Failure | None = None
        self._previous: dict[int, Any] = {}
        self.signal = 0  # that asked us to stop
        self._watch = StoppedWatch(self.processes, self.name, self.outlook)
        self.replaced = 0  # workers started in place of lost ones

    def __enter__(self) -> Workers:
        for rank in range(self.size):
            self.processes.append(self._start(rank))
        for number in (signal.SIGTERM, signal.SIGINT):
            with contextlib.suppress(ValueError):  # not the main thread: signals are the caller's business
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
        with self._words(rank).open("wb") as words:
            return subprocess.Popen(
                [sys.executable, "-m", "tenor.training.worker", str(self.scratch / "job.json")],
                stdin=subprocess.PIPE,  # its closing tells the worker that we are gone
                stdout=subprocess.PIPE if rank == 0 else subprocess.DEVNULL,
                stderr=words,
                env=self._environment(rank),
                start_new_session=True,  # Ctrl-C reaches the workers through us, once
            )

    def _environment(self, rank: int) -> dict[str, str]:
        return {
            **os.environ,
            "TENOR_RANK": str(rank),
            "TENOR_WORLD_SIZE": str(self.size),
            "TENOR_RENDEZVOUS": f"file://{self.scratch}/rendezvous",
            "OMP_NUM_THREADS": str(self.threads),
            "PYTHONPATH": os.pathsep.join(filter(None, sys.path)),
        }

    def name(self, rank: int) -> str:
        return f"worker {rank}"

    def outlook(self, rank: int) -> str:
        """What becomes of a worker that stays silent."""
        return "after --timeout it counts as lost"

    def is_needed(self, rank: int) -> bool:
        """Whether the others cannot go on without it."""
        return True

    def _words(self, rank: int) -> Path:
        return self.scratch / f"stderr-{rank}"

    def _forward(self, number: int, _: FrameType | None) -> None:
        self.signal = number
        for process in self.processes:
            if process.poll() is None:
                process.send_signal(number)

    def events(self) -> Iterator[bytes]:
        """The lines rank 0 writes, until every worker has left or one has failed."""
        stream = self.processes[0].stdout
        assert stream is not None
        os.set_blocking(stream.fileno(), False)
        rest = b""
        with selectors.DefaultSelector() as selector:
            selector.register(stream, selectors.EVENT_READ)
            while self._is_running() and not self._is_held_up():
                yield from self._watch.look()
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
        """By stopped workers, where all are, so that no other's time-out finds them, or where we were asked to end."""
        is_asked = self.signal != 0 and any(map(self.is_needed, self._watch.stopped))
        is_held_up = is_asked or self._watch.seconds_since_all_stopped() > self.timeout
        if is_held_up:
            self._note_failure(self._watch.silent())
        return is_held_up

    def _note_failure(self, failed: list[int]) -> None:
        """Wait for the others to notice, then blame one that was killed before those that lost contact with it."""
        deadline = time.monotonic() + (GRACE_SECONDS if self.signal else 2.0)
        while time.monotonic() < deadline and any(process.poll() is None for process in self.processes):
            time.sleep(0.02)
        codes = {rank: code for rank, process in enumerate(self.processes) if (code := process.poll())}
        killed = [rank for rank in codes if codes[rank] < 0]
        crashed = [rank for rank in codes if not (self.scratch / f"error-{rank}.json").exists()]
        silent = self._watch.silent() if all(map(self._lost_contact, codes)) else []
        rank = next(iter([*killed, *crashed, *silent, *failed]))
        state = process_state(self.processes[rank].pid)
        self.failed = Failure(rank, self.name(rank), codes.get(rank), _last_words(self._words(rank)), state)

    def _lost_contact(self, rank: int) -> bool:
        """Whether a worker left because another one gave no answer."""
        file = self.scratch / f"error-{rank}.json"
        return file.exists() and json.loads(file.read_text("utf-8"))["kind"] == "WorkerError"


def _drain(stream: IO[bytes]) -> bytes:
    return stream.read() or b""


def _whole_lines(data: bytes) -> Generator[bytes, None, bytes]:
    *lines, rest = data.split(b"\n")
    yield from lines
    return rest


def _last_words(file: Path) -> str:
    lines = [line for line in file.read_text("utf-8", "replace").splitlines() if line.strip()]
    return lines[-1].strip() if lines else ""
