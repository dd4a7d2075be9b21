"""The Dask engine: a cluster that Tenor starts on loopback, with a dashboard, or one that is already running.

Dask moves code by pickle, so anybody who can connect to a scheduler can run code as its user. The cluster that Tenor
starts therefore uses TLS with a certificate made for this one run, which also keeps out other users of the machine. The
key stays in memory. Python's ssl can only load a key from a file; Dask writes it to a private folder and removes it at
once.
"""

from __future__ import annotations

import contextlib
import functools
import tempfile
from collections.abc import Sequence
from typing import Any

from tenor.engines.kept_environment import kept_environment
from tenor.engines.protocol import MAX_ATTEMPTS, Done, answer, too_many_deaths, unwrap
from tenor.engines.records import Json
from tenor.engines.settings import EngineSettings
from tenor.environment import num_workers
from tenor.errors import MissingExtra, UsageError, WorkerError

_LOOPBACK = "127.0.0.1"
_STARTS = 10  # attempts to start a cluster


class DaskEngine:
    """Runs each task as a Dask future. A task that Dask gives up because its workers died is submitted again."""

    name = "dask"

    def __init__(self, settings: EngineSettings) -> None:
        try:
            import dask
            import distributed
        except ImportError as error:
            raise MissingExtra("--engine dask", "dask") from error
        self._open = contextlib.ExitStack()
        self._open.enter_context(kept_environment())
        self._distributed = distributed
        scratch = self._open.enter_context(
            tempfile.TemporaryDirectory(prefix="tenor-dask-", ignore_cleanup_errors=True)
        )
        config = {"distributed.scheduler.allowed-failures": 100, "distributed.worker.memory.terminate": False}
        self._open.enter_context(dask.config.set({**config, "temporary-directory": scratch}))
        try:
            self._client = self._connect(settings)
            if settings.dask_report:
                self._report(settings.dask_report)
        except BaseException:
            self.close()
            raise
        self.workers = max(1, len(self._client.scheduler_info(n_workers=-1)["workers"]))

    def _connect(self, settings: EngineSettings) -> Any:
        if settings.cluster:
            try:
                client = self._distributed.Client(settings.cluster, security=_security(settings), timeout=20)
            except (OSError, TimeoutError, ValueError) as error:
                raise WorkerError(
                    f"no Dask scheduler answers: {error}",
                    where=settings.cluster,
                    remedy="check --cluster, --tls-ca, --tls-cert and --tls-key",
                ) from error
            return self._open.enter_context(client)
        cluster = self._open.enter_context(self._start_cluster(num_workers(settings.workers)))
        return self._open.enter_context(self._distributed.Client(cluster, security=cluster.security))

    def _start_cluster(self, workers: int) -> Any:
        """Start a cluster on loopback. Dask gives up when a worker dies during the start, so this tries again."""
        security = _temporary_security()
        for left in reversed(range(_STARTS)):
            try:
                return self._distributed.LocalCluster(
                    n_workers=workers,
                    threads_per_worker=1,
                    protocol="tls://",
                    security=security,
                    host=_LOOPBACK,
                    dashboard_address=f"{_LOOPBACK}:0",
                )
            except RuntimeError as error:
                if not left:
                    raise WorkerError(
                        f"the Dask workers do not start: {error}", remedy="read their messages on standard error"
                    ) from error
        raise AssertionError("unreachable")

    def _report(self, file: str) -> None:
        """Write task stream, worker profiles and bandwidth to `file` when the engine closes."""
        try:
            import bokeh  # noqa: F401
        except ImportError as error:
            raise MissingExtra("--dask-report", "dask") from error
        self._open.enter_context(self._distributed.performance_report(filename=file))

    def run(self, stage: str, tasks: Sequence[Json], done: Done) -> list[Json]:
        work = functools.partial(answer, stage)
        waiting = {
            self._client.submit(work, task, pure=False, retries=MAX_ATTEMPTS): number
            for number, task in enumerate(tasks)
        }
        attempts = [1] * len(tasks)
        results: dict[int, Json] = {}
        completed = self._distributed.as_completed(list(waiting))
        try:
            for future in completed:
                number = waiting.pop(future)
                try:
                    results[number] = unwrap(future.result())
                except self._distributed.KilledWorker as error:
                    attempts[number] += 1
                    if attempts[number] > MAX_ATTEMPTS:
                        raise too_many_deaths(stage, str(error)) from error
                    again = self._client.submit(work, tasks[number], pure=False, retries=MAX_ATTEMPTS)
                    waiting[again] = number
                    completed.add(again)
                else:
                    done(results[number])
        finally:
            self._client.cancel(list(waiting))
        return [results[number] for number in range(len(tasks))]

    def close(self) -> None:
        self._open.close()


def _temporary_security() -> Any:
    """A certificate that no other process knows."""
    from distributed.security import Security

    try:
        return Security.temporary()
    except ImportError as error:
        raise MissingExtra("--engine dask", "dask") from error


def _security(settings: EngineSettings) -> Any:
    files = (settings.tls_ca, settings.tls_cert, settings.tls_key)
    if not any(files) and not (settings.cluster or "").startswith("tls://"):
        return None
    if not all(files):
        raise UsageError("a tls:// cluster needs three files", remedy="give --tls-ca, --tls-cert and --tls-key")
    from distributed.security import Security

    ca, cert, key = files
    return Security(tls_ca_file=ca, tls_client_cert=cert, tls_client_key=key, require_encryption=True)
