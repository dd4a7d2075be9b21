"""The Spark engine, beyond the contract of all engines."""

from __future__ import annotations

from engines.installed import needs, run_module


@needs("spark")
def test_a_local_spark_master_stays_on_loopback() -> None:
    run_module("engines.loopback_checks", "spark", "local[1,4]")
