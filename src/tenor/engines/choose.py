"""Choose the engine that the settings name."""

from __future__ import annotations

from tenor.engines.protocol import Engine
from tenor.engines.settings import EngineSettings
from tenor.environment import num_workers
from tenor.errors import UsageError


def make_engine(settings: EngineSettings) -> Engine:
    """Start the engine, or connect to the cluster that the settings name.

    Raises:
        UsageError: An option does not belong to the engine.
        MissingExtra: The engine's library is not installed.
        WorkerError: The cluster does not answer, or its workers do not start.
    """
    if settings.engine != "dask" and (settings.dask_report or settings.tls_ca or settings.tls_cert or settings.tls_key):
        raise UsageError("--dask-report and the --tls options belong to --engine dask", remedy="add --engine dask")
    if settings.engine == "local":
        if settings.cluster:
            raise UsageError(
                "--cluster has no effect with --engine local", remedy="add --engine dask or --engine spark, or omit it"
            )
        from tenor.engines.local import LocalEngine

        return LocalEngine(num_workers(settings.workers))
    if settings.engine == "dask":
        from tenor.engines.dask import DaskEngine

        return DaskEngine(settings)
    from tenor.engines.spark import SparkEngine

    return SparkEngine(settings)
