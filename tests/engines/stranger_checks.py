"""`python -m engines.stranger_checks`: a Dask cluster that Tenor starts refuses clients without its certificate."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Any

import distributed
from distributed.security import Security

from tenor.engines.choose import make_engine
from tenor.engines.dask import DaskEngine
from tenor.engines.settings import EngineSettings


def is_let_in(address: str, security: Any) -> bool:
    try:
        with distributed.Client(address, security=security, timeout="5s", set_as_default=False) as client:
            return bool(client.submit(int, "7").result(timeout=20) == 7)
    except (OSError, TimeoutError, RuntimeError, ValueError):
        return False


def check_strangers() -> None:
    with tempfile.TemporaryDirectory() as folder:
        tempfile.tempdir = folder
        engine = make_engine(EngineSettings("dask", workers=1))
        assert isinstance(engine, DaskEngine)
        try:
            cluster = engine._client.cluster
            for one in [cluster.scheduler_address, *(worker["nanny"] for worker in _workers(engine))]:
                assert one.startswith("tls://127.0.0.1:"), one
            address = cluster.scheduler_address
            assert is_let_in(address, cluster.security)
            assert not is_let_in(address.replace("tls://", "tcp://"), None)
            assert not is_let_in(address, Security.temporary())  # a certificate, but not ours
            written = [path for path in Path(folder).rglob("*") if path.is_file()]
            assert not any(b"PRIVATE KEY" in path.read_bytes() for path in written), written
        finally:
            engine.close()
        assert list(Path(folder).iterdir()) == []
        tempfile.tempdir = None


def _workers(engine: DaskEngine) -> list[dict[str, Any]]:
    return list(engine._client.scheduler_info(n_workers=-1)["workers"].values())


if __name__ == "__main__":
    check_strangers()
