"""Local processes. A worker that dies is replaced and its task given to another."""

from __future__ import annotations

import contextlib
import json
import os
import selectors
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from tenor.engines.protocol import MAX_ATTEMPTS, Done, Task, call, too_many_deaths, unwrap


class LocalEngine:
    """`workers` processes; one worker is this process itself, with nothing to start."""

    name = "local"

    def __init__(self, workers: int) -> None:
        self.workers = workers
        self._crew: list[_Worker] = []

    def run(self, stage: str, tasks: Sequence[Task], done: Done) -> list[Task]:
        if self.workers == 1 or len(tasks) <= 1:
            return [_tell(call(stage, task), done) for task in tasks]
        while len(self._crew) < min(self.workers, len(tasks)):
            self._crew.append(_Worker())
        try:
            return _Shift(self._crew, stage, tasks, done).work()
        except BaseException:
            self.close()  # the others are still at tasks whose answers nobody will hear
            raise

    def close(self) -> None:
        for worker in self._crew:
            worker.stop()
        self._crew = []


def _tell(result: Task, done: Done) -> Task:
    done(result)
    return result


class _Worker:
    """One child process and the task it holds."""

    def __init__(self) -> None:
        path = os.pathsep.join(p or str(Path.cwd()) for p in sys.path)
        self.process = subprocess.Popen(
            [sys.executable, "-m", "tenor.engines.worker"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            env={**os.environ, "PYTHONPATH": path, "NUMBA_NUM_THREADS": "1", "OMP_NUM_THREADS": "1"},
        )
        self.task: int | None = None

    def give(self, number: int, request: Task) -> None:
        assert self.process.stdin is not None
        self.task = number
        with contextlib.suppress(BrokenPipeError):  # it is dead; the end of its output says so
            self.process.stdin.write(json.dumps(request).encode() + b"\n")
            self.process.stdin.flush()

    def reply(self) -> dict[str, Any] | None:
        """Its answer, or None when it died."""
        assert self.process.stdout is not None
        line = self.process.stdout.readline()
        return json.loads(line) if line.endswith(b"\n") else None

    def stop(self) -> None:
        self.process.kill()
        self.process.wait()
        for pipe in (self.process.stdin, self.process.stdout):
            if pipe is not None:
                with contextlib.suppress(BrokenPipeError):
                    pipe.close()


class _Shift:
    """One stage on a crew of workers."""

    def __init__(self, crew: list[_Worker], stage: str, tasks: Sequence[Task], done: Done) -> None:
        self.crew, self.stage, self.tasks, self.done = crew, stage, tasks, done
        self.waiting = list(range(len(tasks)))[::-1]
        self.attempts = [0] * len(tasks)
        self.results: dict[int, Task] = {}

    def work(self) -> list[Task]:
        for seat in range(len(self.crew)):
            self._next(seat)
        while len(self.results) < len(self.tasks):
            for seat in self._ready():
                self._hear(seat)
        return [self.results[number] for number in range(len(self.tasks))]

    def _ready(self) -> list[int]:
        with selectors.DefaultSelector() as selector:
            for seat, worker in enumerate(self.crew):
                if worker.task is not None:
                    assert worker.process.stdout is not None
                    selector.register(worker.process.stdout, selectors.EVENT_READ, seat)
            return [key.data for key, _ in selector.select()]

    def _next(self, seat: int) -> None:
        if self.waiting:
            number = self.waiting.pop()
            self.attempts[number] += 1
            self.crew[seat].give(number, {"stage": self.stage, "task": self.tasks[number]})

    def _hear(self, seat: int) -> None:
        worker = self.crew[seat]
        number, reply = worker.task, worker.reply()
        assert number is not None
        worker.task = None
        if reply is None:
            self._replace(seat, number)
        else:
            self.results[number] = _tell(unwrap(reply), self.done)
        self._next(seat)

    def _replace(self, seat: int, number: int) -> None:
        code = self.crew[seat].process.wait()
        self.crew[seat].stop()
        if self.attempts[number] >= MAX_ATTEMPTS:
            raise too_many_deaths(self.stage, f"ended with code {code}")
        self.waiting.append(number)
        self.crew[seat] = _Worker()
