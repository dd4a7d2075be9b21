"""The worker processes that train word vectors together on one machine."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import sys
import tempfile
import time
from dataclasses import asdict, dataclass
from types import FrameType
from typing import IO, Any

import numpy as np

from tenor.embedding.settings import EmbedSettings
from tenor.embedding.sources import Blocks, Nameless, TextWords
from tenor.embedding.subwords import Rows
from tenor.embedding.workers.division import Division
from tenor.embedding.workers.tables import BLOCKS, IS_READY, Tables
from tenor.errors import WorkerError

GRACE_SECONDS = 30.0  # for workers to end the blocks they are at


@dataclass(frozen=True)
class TeamWork:
    """What to train on, and how.

    Attributes:
        words: The vocabulary.
        blocks: The text.
        rows: The rows of the input table that make up each word; None if each word has one of its own.
        settings: How to train.
    """

    words: TextWords
    blocks: Blocks
    rows: Rows | None
    settings: EmbedSettings


class WorkerTeam:
    """The worker processes of this machine. Use with `with`.

    `signal` is the SIGINT or SIGTERM that came, or 0. If no other machine has to hear of it, it asks the workers to
    stop after the blocks they are at.
    """

    def __init__(self, tables: Tables, work: TeamWork, division: Division, is_alone: bool) -> None:
        self.tables, self.work, self.division, self.is_alone = tables, work, division, is_alone
        self.signal = 0
        self._processes: list[subprocess.Popen[bytes]] = []
        self._previous: dict[int, Any] = {}

    def __enter__(self) -> WorkerTeam:
        self._stack = contextlib.ExitStack()
        self._errors: IO[bytes] = self._stack.enter_context(tempfile.TemporaryFile(prefix="tenor-embed-"))
        self._counts = self._stack.enter_context(contextlib.closing(Nameless()))
        self._counts.append(self.work.words.counts.astype(np.int64).view(np.int32))
        self._rows: Nameless | None = None
        if self.work.rows is not None:
            self._rows = self._stack.enter_context(contextlib.closing(Nameless()))
            self._rows.append(self.work.rows.starts.view(np.int32))
            self._rows.append(self.work.rows.rows)
        for rank in range(self.division.size):
            self._processes.append(self._start(rank))
        for number in (signal.SIGTERM, signal.SIGINT):
            with contextlib.suppress(ValueError):  # outside the main thread the caller handles signals
                self._previous[number] = signal.signal(number, self._stop)
        return self

    def __exit__(self, *_: object) -> None:
        for number, handler in self._previous.items():
            signal.signal(number, handler)
        for process in self._processes:
            process.kill()
            process.wait()
            if process.stdin is not None:
                with contextlib.suppress(OSError):
                    process.stdin.close()
        self._stack.close()

    def _start(self, rank: int) -> subprocess.Popen[bytes]:
        rows = None if self._rows is None else self._rows.handle
        own = (self.tables.handle, self._counts.handle, *(() if rows is None else (rows,)))
        process = subprocess.Popen(
            [sys.executable, "-m", "tenor.embedding.workers.worker"],
            stdin=subprocess.PIPE,  # its end tells the worker that this process is gone
            stdout=subprocess.DEVNULL,
            stderr=self._errors,
            pass_fds=(*own, *self.work.blocks.handles()),
            env={**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path)), "OMP_NUM_THREADS": "1"},
            start_new_session=True,
        )
        job = {
            "rank": rank,
            "division": asdict(self.division),
            "num_words": len(self.work.words.words),
            "tables": self.tables.handle,
            "counts": self._counts.handle,
            "num_inputs": len(self.tables.inputs),
            "rows": rows,
            "blocks": self.work.blocks.describe(),
            "settings": asdict(self.work.settings),
        }
        assert process.stdin is not None
        with contextlib.suppress(BrokenPipeError):  # it is dead; its exit code says so
            process.stdin.write(json.dumps(job).encode() + b"\n")
            process.stdin.flush()
        return process

    def _stop(self, number: int, _: FrameType | None) -> None:
        self.signal = number
        if self.is_alone:
            self.tables.stop()
        self._until = time.monotonic() + GRACE_SECONDS

    def is_running(self) -> bool:
        """Whether any worker still works.

        Raises:
            WorkerError: A worker failed.
        """
        codes = [process.poll() for process in self._processes]
        for rank, code in enumerate(codes):
            if code:
                how = f"was killed by {signal.Signals(-code).name}" if code < 0 else f"ended with exit code {code}"
                self._errors.seek(0)
                lines = self._errors.read().decode("utf-8", "replace").strip().splitlines()
                said = f": {lines[-1]}" if lines else ""
                raise WorkerError(f"worker {rank} {how}{said}", remedy="continue with --resume")
        is_late = self.signal and self.is_alone and time.monotonic() > self._until
        return any(code is None for code in codes) and not is_late

    def is_ready(self) -> bool:
        """Whether all workers have loaded what they need."""
        return bool(self.tables.counters[:, IS_READY].all())

    def is_in_round(self, end: int) -> bool:
        """Whether any worker still works on blocks below `end`. Raises WorkerError as `is_running` does."""
        return self.is_running() and self.tables.counters[:, BLOCKS].sum() < self.division.num_blocks(end)
