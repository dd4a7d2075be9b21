"""The local engine: worker processes on this machine. A worker that dies is replaced, and its task runs again."""

from __future__ import annotations

import contextlib
import json
import os
import selectors
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

from tenor.engines.protocol import MAX_ATTEMPTS, Done, call, too_many_deaths, unwrap
from tenor.engines.records import Json


class LocalEngine:
    """Runs tasks in `workers` child processes; a single worker is this process itself."""

    name = "local"

    def __init__(self, workers: int) -> None:
        self.workers = workers
        self._pool: list[_Worker] = []

    def run(self, stage: str, tasks: Sequence[Json], done: Done) -> list[Json]:
        if self.workers == 1 or len(tasks) <= 1:
            return [_report(call(stage, task), done) for task in tasks]
        while len(self._pool) < min(self.workers, len(tasks)):
            self._pool.append(_Worker())
        try:
            return _StageRun(self._pool, stage, tasks, done).run()
        except BaseException:
            self.close()  # the other workers still run tasks that nobody needs any more
            raise

    def close(self) -> None:
        for worker in self._pool:
            worker.stop()
        self._pool = []


def _report(result: Json, done: Done) -> Json:
    done(result)
    return result


class _Worker:
    """One child process, and the number of the task that it runs."""

    def __init__(self) -> None:
        path = os.pathsep.join(p or str(Path.cwd()) for p in sys.path)
        self.process = subprocess.Popen(
            [sys.executable, "-m", "tenor.engines.worker"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            env={**os.environ, "PYTHONPATH": path, "NUMBA_NUM_THREADS": "1", "OMP_NUM_THREADS": "1"},
        )
        self.task: int | None = None

    def give(self, number: int, request: Json) -> None:
        assert self.process.stdin is not None
        self.task = number
        with contextlib.suppress(BrokenPipeError):  # the worker is dead; `reply` notices it
            self.process.stdin.write(json.dumps(request).encode() + b"\n")
            self.process.stdin.flush()

    def reply(self) -> Json | None:
        """The worker's reply, or None if the worker died."""
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


class _StageRun:
    """The tasks of one stage on a pool of workers; a worker is named by its index in the pool."""

    def __init__(self, pool: list[_Worker], stage: str, tasks: Sequence[Json], done: Done) -> None:
        self.pool, self.stage, self.tasks, self.done = pool, stage, tasks, done
        self.waiting = list(range(len(tasks)))[::-1]
        self.attempts = [0] * len(tasks)
        self.results: dict[int, Json] = {}

    def run(self) -> list[Json]:
        for index in range(len(self.pool)):
            self._give_next(index)
        while len(self.results) < len(self.tasks):
            for index in self._ready():
                self._take_reply(index)
        return [self.results[number] for number in range(len(self.tasks))]

    def _ready(self) -> list[int]:
        """Wait until some workers have replied or died."""
        with selectors.DefaultSelector() as selector:
            for index, worker in enumerate(self.pool):
                if worker.task is not None:
                    assert worker.process.stdout is not None
                    selector.register(worker.process.stdout, selectors.EVENT_READ, index)
            return [key.data for key, _ in selector.select()]

    def _give_next(self, index: int) -> None:
        if self.waiting:
            number = self.waiting.pop()
            self.attempts[number] += 1
            self.pool[index].give(number, {"stage": self.stage, "task": self.tasks[number]})

    def _take_reply(self, index: int) -> None:
        worker = self.pool[index]
        number, reply = worker.task, worker.reply()
        assert number is not None
        worker.task = None
        if reply is None:
            self._replace(index, number)
        else:
            self.results[number] = _report(unwrap(reply), self.done)
        self._give_next(index)

    def _replace(self, index: int, number: int) -> None:
        code = self.pool[index].process.wait()
        self.pool[index].stop()
        if self.attempts[number] >= MAX_ATTEMPTS:
            raise too_many_deaths(self.stage, f"ended with code {code}")
        self.waiting.append(number)
        self.pool[index] = _Worker()
