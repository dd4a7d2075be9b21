"""The engine that the settings ask for."""

from __future__ import annotations

from tenor.engines.protocol import Engine
from tenor.engines.settings import EngineSettings
from tenor.errors import UsageError


def make_engine(settings: EngineSettings) -> Engine:
    """Start (or reach) the engine; UsageError when the settings do not fit it."""
    if settings.engine != "dask" and (settings.dask_report or settings.tls_ca or settings.tls_cert or settings.tls_key):
        raise UsageError("--dask-report and the --tls options belong to --engine dask", remedy="add --engine dask")
    if settings.engine == "local":
        if settings.cluster:
            raise UsageError("--cluster needs an engine that has one", remedy="add --engine dask or --engine spark")
        from tenor.engines.local import LocalEngine

        return LocalEngine(settings.workers)
    if settings.engine == "dask":
        from tenor.engines.dask import DaskEngine

        return DaskEngine(settings)
    from tenor.engines.spark import SparkEngine

    return SparkEngine(settings)
