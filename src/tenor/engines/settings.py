"""The engine settings that `prepare` and `predict` share: where a map-reduce job runs and how to reach the cluster."""

from __future__ import annotations

from dataclasses import dataclass

from tenor.settings import AUTO_WORKERS, Settings, parse_workers, setting

ENGINES = ("local", "dask", "spark")
GROUP = "Engine and workers"


@dataclass(frozen=True)
class EngineSettings(Settings):
    """Where a map-reduce job runs."""

    engine: str = setting("local", "Where the job runs.", ENGINES, group=GROUP)
    workers: int | str = setting(
        AUTO_WORKERS,
        "Number of worker processes, or auto for one per core. A running --cluster ignores it.",
        group=GROUP,
    )
    cluster: str | None = setting(
        None,
        "Address of a running cluster: tcp:// or tls:// for Dask, a master URL for Spark. Default: local workers.",
        group=GROUP,
    )
    dask_report: str | None = setting(
        None,
        "Write Dask's performance report (task stream, profiles) to this HTML file. Only with --engine dask.",
        group=GROUP,
    )
    tls_ca: str | None = setting(
        None, "File with the certificate authority of a tls:// cluster. Only with --engine dask.", group=GROUP
    )
    tls_cert: str | None = setting(
        None, "File with the client certificate for a tls:// cluster. Only with --engine dask.", group=GROUP
    )
    tls_key: str | None = setting(
        None, "File with the client key for a tls:// cluster. Only with --engine dask.", group=GROUP
    )

    def __post_init__(self) -> None:
        super().__post_init__()
        object.__setattr__(self, "workers", parse_workers(self.workers))
