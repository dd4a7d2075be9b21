"""What every engine must do; `python -m contracts.engine_checks NAME FOLDER` checks one engine."""

from __future__ import annotations

import os
import signal
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import psutil
import pytest
from helpers.corpora import make_reviews, write_bytes, write_csv, write_json_lines
from preparation.job.test_prepare import hashes

from tenor.engines.choose import make_engine
from tenor.engines.protocol import Engine
from tenor.engines.settings import EngineSettings
from tenor.errors import CorpusError, Stopped, WorkerError
from tenor.preparation.job.prepare import prepare
from tenor.preparation.settings import PrepareSettings


def check_engine(name: str, folder: Path) -> None:
    engine = make_engine(EngineSettings(name, workers=2))
    try:
        for check in (_order, _listeners, _nothing, _raised_errors, _system_errors, _crashes):
            check(engine)
        for number, check_in in enumerate((_heard_at_once, _error_at_once, _signal_at_once)):
            (folder / str(number)).mkdir()
            check_in(engine, folder / str(number))
        _lost_workers(engine, folder / "deaths")
        _same_bytes(name, folder / "prepared")
    finally:
        engine.close()


def _order(engine: Engine) -> None:
    heard: list[dict[str, Any]] = []
    results = engine.run("contracts.stages:square", [{"value": n} for n in range(25)], heard.append)
    assert [result["square"] for result in results] == [n * n for n in range(25)]
    assert sorted(result["square"] for result in heard) == [n * n for n in range(25)]


def _listeners(engine: Engine) -> None:
    """The processes of an engine listen on loopback only; those of the local engine do not listen."""
    if engine.name == "local":
        return
    me = psutil.Process()
    found = [socket for process in (me, *me.children(recursive=True)) for socket in process.net_connections("inet")]
    listening = {socket.laddr.ip for socket in found if socket.status == psutil.CONN_LISTEN}
    assert listening and listening <= {"127.0.0.1", "::ffff:127.0.0.1", "::1"}, listening


def _nothing(engine: Engine) -> None:
    assert engine.run("contracts.stages:square", [], lambda result: None) == []


def _raised_errors(engine: Engine) -> None:
    with pytest.raises(CorpusError, match=r"file\.csv: is bad; fix it") as raised:
        engine.run("contracts.stages:refuse", [{}, {}], lambda result: None)
    assert raised.value.remedy == "fix it"


def _system_errors(engine: Engine) -> None:
    with pytest.raises(OSError, match="No space left") as raised:
        engine.run("contracts.stages:no_space", [{}, {}], lambda result: None)
    assert raised.value.errno == 28


def _crashes(engine: Engine) -> None:
    expected = ZeroDivisionError if engine.name == "local" and engine.workers == 1 else WorkerError
    with pytest.raises(expected, match="a mistake in a stage"):
        engine.run("contracts.stages:crash", [{}, {}], lambda result: None)
    _order(engine)  # the engine still works


def _heard_at_once(engine: Engine, folder: Path) -> None:
    """The second task ends only after `done` was called with the first result."""
    (folder / "0").touch()
    tasks = [{"go": str(folder / name), "late": str(folder / "late")} for name in ("0", "1")]
    results = engine.run("contracts.stages:linger", tasks, lambda result: (folder / "1").touch())
    assert results == [{"waited": True}] * 2


def _error_at_once(engine: Engine, folder: Path) -> None:
    with _left_at_once(engine, folder) as tasks, pytest.raises(CorpusError):
        engine.run("contracts.stages:refuse_or_linger", tasks, lambda result: None)


def _signal_at_once(engine: Engine, folder: Path) -> None:
    def stop(number: int, frame: object) -> None:
        raise Stopped(number)

    before = signal.signal(signal.SIGTERM, stop)
    timer = threading.Timer(1, os.kill, (os.getpid(), signal.SIGTERM))
    try:
        with _left_at_once(engine, folder) as tasks, pytest.raises(Stopped):
            timer.start()
            engine.run("contracts.stages:linger", tasks, lambda result: None)
    finally:
        timer.join()
        signal.signal(signal.SIGTERM, before)


@contextmanager
def _left_at_once(engine: Engine, folder: Path) -> Iterator[list[dict[str, Any]]]:
    """Four tasks of half a minute: `run` ends long before they are done, and they end with it."""
    paths = {"go": str(folder / "go"), "late": str(folder / "late")}
    began = time.monotonic()
    yield [{"number": number, **paths} for number in range(4)]
    assert time.monotonic() - began < 15
    (folder / "go").touch()
    time.sleep(0.5)
    assert engine.name == "dask" or not (folder / "late").exists()  # Dask cannot end a task that has begun


def _lost_workers(engine: Engine, folder: Path) -> None:
    folder.mkdir()
    tasks = [{"folder": str(folder), "deaths": 5, "value": n} for n in range(4)]
    results = engine.run("contracts.stages:die_often", tasks, lambda result: None)
    assert [result["value"] for result in results] == [0, 1, 2, 3]
    assert len(list(folder.iterdir())) >= 5


def _same_bytes(name: str, folder: Path) -> None:
    """Data prepared on the engine has the same bytes as data prepared by one local worker. Dask writes its report."""
    reviews = make_reviews(400)
    files = [write_json_lines(folder / "a.jsonl", reviews[:150]), write_csv(folder / "b.csv.gz", reviews[150:])]
    prepare(files, folder / "one", PrepareSettings(workers=1))
    report = folder.parent / "report.html"
    asked = {"dask_report": str(report)} if name == "dask" else {}
    result = prepare(files, folder / "other", PrepareSettings(workers=2, engine=name, **asked))
    assert name != "dask" or "Task Stream" in report.read_text("utf-8")
    assert result.engine == name
    assert hashes(folder / "one") == hashes(folder / "other")
    unlabelled = "".join(f"{text}\n" for text in ("text", *(review.text for review in make_reviews(500)[350:])))
    files.append(write_bytes(folder / "c.csv", unlabelled.encode()))
    prepare(files, folder / "one more", PrepareSettings(workers=1, unlabelled=True))
    result = prepare(files, folder / "other more", PrepareSettings(workers=2, engine=name, unlabelled=True))
    assert (result.duplicates, result.splits["unlabelled"]["rows"]) == (50, 100)
    assert hashes(folder / "one more") == hashes(folder / "other more")
    made = ["a.jsonl", "b.csv.gz", "c.csv", "one", "one more", "other", "other more"]
    assert sorted(path.name for path in folder.iterdir()) == made


if __name__ == "__main__":
    check_engine(sys.argv[1], Path(sys.argv[2]))
