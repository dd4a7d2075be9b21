"""The Spark engine, beyond the contract of all engines."""

from __future__ import annotations

from typing import Any

import pytest

from tenor.engines.settings import EngineSettings
from tenor.engines.spark import _build


class Builder:
    """Stands in for Spark's builder and session, and keeps what it is given."""

    def __init__(self) -> None:
        self.given: dict[str, str] = {}
        self.sparkContext = self

    def appName(self, name: str) -> Builder:  # noqa: N802 - Spark's name
        return self

    def master(self, name: str) -> Builder:
        return self.config("master", name)

    def config(self, name: str, value: str) -> Builder:
        self.given[name] = value
        return self

    def getOrCreate(self) -> Builder:  # noqa: N802 - Spark's name
        return self

    def setLogLevel(self, level: str) -> None:  # noqa: N802 - Spark's name
        pass


@pytest.mark.parametrize(
    ("cluster", "master", "address"),
    [(None, "local[3,", "127.0.0.1"), ("local[1,4]", "local[1,4]", "127.0.0.1"), ("yarn", "yarn", None)],
)
def test_a_local_master_stays_on_loopback(
    monkeypatch: pytest.MonkeyPatch, cluster: str | None, master: str, address: str | None
) -> None:
    """The contract looks at the listeners of a real session."""
    for name in ("SPARK_LOCAL_IP", "PYSPARK_PYTHON"):
        monkeypatch.setenv(name, "")
        monkeypatch.delenv(name)
    builder: Any = Builder()
    _build(builder, EngineSettings("spark", workers=3, cluster=cluster))
    assert builder.given["master"].startswith(master)
    for name in ("spark.driver.host", "spark.driver.bindAddress"):
        assert builder.given.get(name) == address
