"""The service's side of the process that computes (`tenor.serving.process.worker`)."""

from __future__ import annotations

import contextlib
import os
import subprocess
import sys
import threading
from pathlib import Path
from typing import IO, Any, TypeAlias

from tenor.errors import TenorError, WorkerError
from tenor.serving.process.messages import read_message, write_message

Contribution: TypeAlias = tuple[int, int, str, float]  # start, end, the words, their contribution
FILES = ("config.json", "vocab.json", "model.safetensors")  # what the model of a run folder is read from


def model_files(run: Path) -> list[Path]:
    """What the model is read from: the files of a run folder, or a compact model itself."""
    return [run] if run.is_file() else [run / name for name in FILES]


class RemoteModel:
    """A model in a process of its own. Calls from several threads take turns.

    Attributes:
        labels: The names of the classes.
        version: 12 hexadecimal digits that change with the model.
        threshold: What the probability of the second of two classes must exceed, so that it is the label.

    Raises:
        TenorError: The run folder cannot be used.
        WorkerError: The process has ended.
    """

    def __init__(self, run: Path, threads: int) -> None:
        self._lock = threading.Lock()
        path = os.pathsep.join(filter(None, sys.path))
        self._process = subprocess.Popen(
            [sys.executable, "-m", "tenor.serving.process.worker", str(run), str(threads)],
            env={**os.environ, "PYTHONPATH": path},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
        )
        try:
            known = self._read()
        except TenorError:
            self.close()
            raise
        self.labels: tuple[str, ...] = tuple(known["labels"])
        self.version: str = known["version"]
        self.threshold: float = known["threshold"]

    @property
    def is_alive(self) -> bool:
        return self._process.poll() is None

    def predict_proba(self, texts: list[str]) -> list[list[float]]:
        """The probability of each class, in the order of `labels`, for each text."""
        rows: list[list[float]] = self._ask("predict", texts)
        return rows

    def explain(self, texts: list[str]) -> list[list[Contribution]]:
        """What each word contributes to the log-odds of the predicted label, for each text."""
        return [[(start, end, text, value) for start, end, text, value in row] for row in self._ask("explain", texts)]

    def close(self, patience: float = 60.0) -> None:
        """Wait for the answer on its way and end the process; kill it if either takes more than `patience` seconds."""
        if not self._lock.acquire(timeout=patience):
            self._process.kill()
            self._lock.acquire()  # the thread that waits for the answer gets an error now
        try:
            for pipe in self._pipes():
                with contextlib.suppress(OSError):
                    pipe.close()
            self._process.wait(patience)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        finally:
            self._lock.release()

    def _ask(self, what: str, texts: list[str]) -> Any:
        with self._lock:
            try:
                write_message(self._pipes()[0], {"do": what, "texts": texts})
            except (OSError, ValueError):  # the process has ended, or `close` was called
                raise _ended() from None
            return self._read()["rows"]

    def _read(self) -> dict[str, Any]:
        try:
            reply: dict[str, Any] = read_message(self._pipes()[1])
        except (EOFError, OSError, ValueError):
            raise _ended() from None
        if "error" in reply:
            raise TenorError.from_dict(reply["error"])
        return reply

    def _pipes(self) -> tuple[IO[bytes], IO[bytes]]:
        assert self._process.stdin is not None and self._process.stdout is not None  # both are pipes
        return self._process.stdin, self._process.stdout


def _ended() -> WorkerError:
    return WorkerError("the process with the model has ended", remedy="its reason is above; it is started again")
