"""The local engine, beyond the contract of all engines."""

from __future__ import annotations

from pathlib import Path

import pytest

from tenor.engines.choose import make_engine
from tenor.engines.settings import EngineSettings
from tenor.errors import WorkerError


def test_a_task_that_always_kills_its_worker_is_given_up(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tenor.engines.local.MAX_ATTEMPTS", 3)
    engine = make_engine(EngineSettings("local", workers=2))
    tasks = [{"folder": str(tmp_path), "deaths": 1000, "value": n} for n in range(2)]
    try:
        with pytest.raises(WorkerError, match="died"):
            engine.run("contracts.stages:die_often", tasks, lambda result: None)
    finally:
        engine.close()
