"""Spark: local threads and Python workers of its own, or a cluster's master."""

from __future__ import annotations

import concurrent.futures
import contextlib
import os
import sys
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
        group = uuid.uuid4().hex
        with concurrent.futures.ThreadPoolExecutor(1) as pool:
            job = pool.submit(self._collect, group, stage, list(tasks))
            told = 0
            while not job.done():
                concurrent.futures.wait([job], timeout=_POLL_SECONDS)
                for _ in range(self._finished(group) - told):
                    done({})
                    told += 1
        replies = self._replies(job)
        results = [unwrap(reply) for reply in replies]
        for _ in range(len(tasks) - told):
            done({})
        return results

    def _collect(self, group: str, stage: str, tasks: list[Task]) -> list[Task]:
        self._context.setJobGroup(group, stage)
        replies: list[Task] = self._context.parallelize(tasks, len(tasks)).map(_Work(stage)).collect()
        return replies

    def _replies(self, job: concurrent.futures.Future[list[Task]]) -> list[Task]:
        try:
            return job.result()
        except Exception as error:  # py4j's own errors, whatever they are
            told = " ".join(str(error).split())[:300]
            raise WorkerError(f"Spark gave the job up: {told}", remedy="look at the executors' logs") from error

    def _finished(self, group: str) -> int:
        """How many tasks of the group are done, from Spark's own tracker."""
        tracker, count = self._context.statusTracker(), 0
        for job in tracker.getJobIdsForGroup(group):
            info = tracker.getJobInfo(job)
            for stage in info.stageIds if info else ():
                found = tracker.getStageInfo(stage)
                count += found.numCompletedTasks if found else 0
        return count

    def close(self) -> None:
        """End the session and its Java process, unless they were there before us."""
        with self._open:
            if not self._borrowed:
                self._stop()

    def _stop(self) -> None:
        gateway = self._context._gateway
        self._session.stop()
        gateway.shutdown()
        process = getattr(gateway, "proc", None)
        if process is not None:
            process.stdin.close()
            process.wait(30)
        type(self._context)._gateway = type(self._context)._jvm = None


class _Work:
    """A task's function as Spark sends it: a name, not code."""

    def __init__(self, stage: str) -> None:
        self.stage = stage

    def __call__(self, task: Task) -> Task:
        return answer(self.stage, task)


def _build(builder: Any, settings: EngineSettings) -> Any:
    path = os.pathsep.join(part or str(Path.cwd()) for part in sys.path)
    options = {
        "spark.task.maxFailures": str(MAX_ATTEMPTS),
        "spark.executorEnv.PYTHONPATH": path,
        "spark.ui.showConsoleProgress": "false",
        "spark.python.worker.reuse": "true",
    }
    if not settings.cluster:
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
