"""Which engine, and how to reach it."""

from __future__ import annotations

from dataclasses import dataclass

ENGINES = ("local", "dask", "spark")


@dataclass(frozen=True)
class EngineSettings:
    """`cluster` is an address to use instead of workers of our own; the certificates are for Dask's tls:// ones."""

    engine: str = "local"
    workers: int = 1
    cluster: str | None = None
    dask_report: str | None = None
    tls_ca: str | None = None
    tls_cert: str | None = None
    tls_key: str | None = None
