"""Spark: local threads and Python workers of its own, or a cluster's master."""

from __future__ import annotations

import concurrent.futures
import contextlib
import os
import sys
import time
import uuid
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from tenor.engines.protocol import MAX_ATTEMPTS, Done, Task, answer, unwrap
from tenor.engines.settings import EngineSettings
from tenor.engines.surroundings import kept_environment
from tenor.errors import MissingExtra, WorkerError

_LOOPBACK = "127.0.0.1"
_POLL_SECONDS = 0.2
_LEAVE_SECONDS = 20.0  # that tasks of a cancelled job get to end; Spark kills their workers after 2 or so

_Heard = list[tuple[int, Task]]  # a task's number and its reply


class SparkEngine:
    """One Spark job a stage, one Spark task each of ours; Spark repeats a task whose worker died."""

    name = "spark"

    def __init__(self, settings: EngineSettings) -> None:
        try:
            from pyspark.sql import SparkSession
        except ImportError as error:
            raise MissingExtra("--engine spark", "spark") from error
        self._open = contextlib.ExitStack()
        self._open.enter_context(kept_environment())
        self._borrowed = SparkSession.getActiveSession() is not None
        self._session = _build(SparkSession.builder, settings)
        self._context = self._session.sparkContext
        self.workers = settings.workers if not settings.cluster else self._context.defaultParallelism

    def run(self, stage: str, tasks: Sequence[Task], done: Done) -> list[Task]:
        if not tasks:
            return []
        group, heard = uuid.uuid4().hex, _Heard()
        with concurrent.futures.ThreadPoolExecutor(1) as pool:
            job = pool.submit(self._work, group, stage, tasks, heard)
            try:
                return _listen(job, heard, len(tasks), done)
            finally:
                self._cancel(job, group)

    def _work(self, group: str, stage: str, tasks: Sequence[Task], heard: _Heard) -> None:
        self._context.setJobGroup(group, stage)
        replies = self._context.accumulator(heard, _Gathering())
        self._context.parallelize(list(enumerate(tasks)), len(tasks)).foreach(_Work(stage, replies))

    def _cancel(self, job: concurrent.futures.Future[None], group: str) -> None:
        """End a job that nobody listens to any more, and see its tasks out: they write files."""
        if job.done():
            return
        with contextlib.suppress(Exception):  # Java may have had the signal too; then the job ends with it
            while not job.done():  # it may be about to start, so once is not enough
                self._context.cancelJobGroup(group)
                concurrent.futures.wait([job], timeout=_POLL_SECONDS)
            until = time.monotonic() + _LEAVE_SECONDS
            while self._busy(group) and time.monotonic() < until:
                time.sleep(_POLL_SECONDS)

    def _busy(self, group: str) -> bool:
        """Whether a task of the group is at work, from Spark's own tracker."""
        tracker = self._context.statusTracker()
        jobs = [tracker.getJobInfo(job) for job in tracker.getJobIdsForGroup(group)]
        stages = [tracker.getStageInfo(stage) for info in jobs if info for stage in info.stageIds]
        return any(stage.numActiveTasks for stage in stages if stage)

    def close(self) -> None:
        """End the session and its Java process, unless they were there before us."""
        with self._open:
            if not self._borrowed:
                self._stop()

    def _stop(self) -> None:
        gateway = self._context._gateway
        with contextlib.suppress(Exception):  # Java may be gone already
            self._session.stop()
        gateway.shutdown()
        process = getattr(gateway, "proc", None)
        if process is not None:
            process.stdin.close()
            process.wait(30)
        type(self._context)._gateway = type(self._context)._jvm = None


def _listen(job: concurrent.futures.Future[None], heard: _Heard, count: int, done: Done) -> list[Task]:
    """Pass on what is heard until the job ends. No call to Java is made here: a signal would cut it in two."""
    results: dict[int, Task] = {}
    ended, told = False, 0
    while not ended:
        ended = bool(concurrent.futures.wait([job], timeout=_POLL_SECONDS).done)
        for number, reply in heard[told:]:
            results[number] = unwrap(reply)
            done(results[number])
            told += 1
    error = job.exception()  # one of py4j's own, whatever it is
    if error is not None or len(results) < count:
        why = " ".join(str(error or "answers were lost").split())[:300]
        raise WorkerError(f"Spark gave the job up: {why}", remedy="look at the executors' logs") from error
    return [results[number] for number in range(count)]


class _Gathering:
    """How Spark adds up replies: each task's come to the driver when it has ended well, and once."""

    def zero(self, value: _Heard) -> _Heard:
        return []

    def addInPlace(self, value: _Heard, more: _Heard) -> _Heard:  # noqa: N802 - Spark's name
        value += more
        return value


class _Work:
    """A task's function as Spark sends it: a name, not code."""

    def __init__(self, stage: str, replies: Any) -> None:
        self.stage, self.replies = stage, replies

    def __call__(self, numbered: tuple[int, Task]) -> None:
        number, task = numbered
        self.replies.add([(number, answer(self.stage, task))])


def _build(builder: Any, settings: EngineSettings) -> Any:
    path = os.pathsep.join(part or str(Path.cwd()) for part in sys.path)
    options = {
        "spark.task.maxFailures": str(MAX_ATTEMPTS),
        "spark.executorEnv.PYTHONPATH": path,
        "spark.ui.showConsoleProgress": "false",
        "spark.python.worker.reuse": "true",
        "spark.python.task.killTimeout": "100ms",
    }
    if (settings.cluster or "local").startswith("local"):
        # Everything on loopback: Spark would bind to the machine's own name.
        os.environ.setdefault("SPARK_LOCAL_IP", _LOOPBACK)
        options |= {"spark.driver.host": _LOOPBACK, "spark.driver.bindAddress": _LOOPBACK}
        os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    builder = builder.appName("tenor prepare").master(settings.cluster or f"local[{settings.workers},{MAX_ATTEMPTS}]")
    for name, value in options.items():
        builder = builder.config(name, value)
    try:
        session = builder.getOrCreate()
    except Exception as error:  # no Java, a wrong master: py4j raises its own kinds
        told = " ".join(str(error).split())[:300]
        raise WorkerError(
            f"Spark does not start: {told}", remedy="it needs Java 17 or newer; check --cluster"
        ) from error
    session.sparkContext.setLogLevel("ERROR")
    return session
