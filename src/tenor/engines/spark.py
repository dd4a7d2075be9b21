"""The Spark engine: a local Spark session that Tenor starts, or the master of a cluster."""

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

from tenor.engines.kept_environment import kept_environment
from tenor.engines.protocol import MAX_ATTEMPTS, Done, answer, unwrap
from tenor.engines.records import Json
from tenor.engines.settings import EngineSettings
from tenor.environment import num_workers
from tenor.errors import MissingExtra, WorkerError

_LOOPBACK = "127.0.0.1"
_POLL_SECONDS = 0.2
_LEAVE_SECONDS = 20.0  # for tasks of a cancelled Spark job to end; Spark kills their workers after about 2

_Replies = list[tuple[int, Json]]  # a task's number and its reply


class SparkEngine:
    """Runs each stage as one Spark job with one Spark task per task. Spark repeats a task whose worker died."""

    name = "spark"

    def __init__(self, settings: EngineSettings) -> None:
        try:
            from pyspark.sql import SparkSession
        except ImportError as error:
            raise MissingExtra("--engine spark", "spark") from error
        self._open = contextlib.ExitStack()
        self._open.enter_context(kept_environment())
        self._shared = SparkSession.getActiveSession() is not None
        self._session = _build(SparkSession.builder, settings)
        self._context = self._session.sparkContext
        self.workers = self._context.defaultParallelism if settings.cluster else num_workers(settings.workers)

    def run(self, stage: str, tasks: Sequence[Json], done: Done) -> list[Json]:
        if not tasks:
            return []
        group, replies = uuid.uuid4().hex, _Replies()
        with concurrent.futures.ThreadPoolExecutor(1) as pool:
            job = pool.submit(self._run_job, group, stage, tasks, replies)
            try:
                return _collect(job, replies, len(tasks), done)
            finally:
                self._cancel(job, group)

    def _run_job(self, group: str, stage: str, tasks: Sequence[Json], replies: _Replies) -> None:
        self._context.setJobGroup(group, stage)
        accumulator = self._context.accumulator(replies, _Appending())
        self._context.parallelize(list(enumerate(tasks)), len(tasks)).foreach(_RunTask(stage, accumulator))

    def _cancel(self, job: concurrent.futures.Future[None], group: str) -> None:
        """Cancel a Spark job that is not needed any more, and wait for its tasks to end, because they write files."""
        if job.done():
            return
        with contextlib.suppress(Exception):  # Java may have received the signal too; then the job ends with Java
            while not job.done():  # the job may be about to start, so one call is not enough
                self._context.cancelJobGroup(group)
                concurrent.futures.wait([job], timeout=_POLL_SECONDS)
            until = time.monotonic() + _LEAVE_SECONDS
            while self._busy(group) and time.monotonic() < until:
                time.sleep(_POLL_SECONDS)

    def _busy(self, group: str) -> bool:
        """Whether a task of the group is running, by Spark's status tracker."""
        tracker = self._context.statusTracker()
        jobs = [tracker.getJobInfo(job) for job in tracker.getJobIdsForGroup(group)]
        stages = [tracker.getStageInfo(stage) for info in jobs if info for stage in info.stageIds]
        return any(stage.numActiveTasks for stage in stages if stage)

    def close(self) -> None:
        """End the session and its Java process, unless the session was active before this engine."""
        with self._open:
            if not self._shared:
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


def _collect(job: concurrent.futures.Future[None], replies: _Replies, count: int, done: Done) -> list[Json]:
    """Take replies until the Spark job ends. Calls to Java are avoided here: a signal could interrupt one halfway."""
    results: dict[int, Json] = {}
    ended, taken = False, 0
    while not ended:
        ended = bool(concurrent.futures.wait([job], timeout=_POLL_SECONDS).done)
        for number, reply in replies[taken:]:
            results[number] = unwrap(reply)
            done(results[number])
            taken += 1
    error = job.exception()  # of any class: py4j has its own
    if error is not None or len(results) < count:
        why = " ".join(str(error or "replies were lost").split())[:300]
        raise WorkerError(f"Spark stopped the job: {why}", remedy="read the logs of the executors") from error
    return [results[number] for number in range(count)]


class _Appending:
    """How Spark adds replies to the accumulator: once for each task, when the task has ended without an error."""

    def zero(self, value: _Replies) -> _Replies:
        return []

    def addInPlace(self, value: _Replies, more: _Replies) -> _Replies:  # noqa: N802 - Spark's name
        value += more
        return value


class _RunTask:
    """The function that Spark runs for each task; the stage travels as a name, not as code."""

    def __init__(self, stage: str, accumulator: Any) -> None:
        self.stage, self.accumulator = stage, accumulator

    def __call__(self, numbered: tuple[int, Json]) -> None:
        number, task = numbered
        self.accumulator.add([(number, answer(self.stage, task))])


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
        # Everything on loopback; by default Spark binds to the address of the machine's name.
        os.environ.setdefault("SPARK_LOCAL_IP", _LOOPBACK)
        options |= {"spark.driver.host": _LOOPBACK, "spark.driver.bindAddress": _LOOPBACK}
        os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    own = f"local[{num_workers(settings.workers)},{MAX_ATTEMPTS}]"
    builder = builder.appName("tenor prepare").master(settings.cluster or own)
    for name, value in options.items():
        builder = builder.config(name, value)
    try:
        session = builder.getOrCreate()
    except Exception as error:  # no Java or a wrong master: py4j has exception classes of its own
        reason = " ".join(str(error).split())[:300]
        raise WorkerError(
            f"Spark does not start: {reason}", remedy="install Java 17 or newer, and check --cluster"
        ) from error
    session.sparkContext.setLogLevel("ERROR")
    return session
