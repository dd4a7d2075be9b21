"""One contract, three engines: order, errors, lost workers, the same bytes, nothing left behind."""

from __future__ import annotations

import contextlib
import importlib.util
import os
import shutil
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import pytest
from contracts.engine_checks import check_engine
from helpers.corpora import make_reviews, write_csv, write_json_lines
from helpers.hosts import needs_hosts, two_hosts
from helpers.processes import child_environment, finish, python, running
from preparation.test_prepare import hashes

from tenor.corpus.pieces import whole
from tenor.corpus.texts import read_piece_texts, text_source
from tenor.engines.choose import make_engine
from tenor.engines.protocol import Done, Task, call
from tenor.engines.settings import EngineSettings
from tenor.errors import CorpusError, UsageError, WorkerError
from tenor.preparation.job import prepare, prepare_on
from tenor.preparation.settings import PrepareSettings


def _missing(engine: str) -> str:
    if engine == "dask" and not importlib.util.find_spec("distributed"):
        return "the extra dask is not installed"
    if engine == "spark" and not (importlib.util.find_spec("pyspark") and shutil.which("java")):
        return "the extra spark or Java is not installed"
    return ""


ENGINES = [
    pytest.param(name, marks=pytest.mark.skipif(bool(_missing(name)), reason=_missing(name)))
    for name in ("local", "dask", "spark")
]


@pytest.mark.parametrize("name", ENGINES)
def test_contract(name: str, tmp_path: Path) -> None:
    """Dask and Spark keep threads and warn about each other's versions: they get a process of their own."""
    if name == "local":
        check_engine(name, tmp_path)
        return
    _run("contracts.engine_checks", name, tmp_path)


@pytest.mark.skipif(bool(_missing("spark")), reason=_missing("spark"))
def test_a_local_spark_master_stays_on_loopback() -> None:
    _run("contracts.loopback_checks", "spark", "local[1,4]")


def _run(module: str, *args: str | Path) -> None:
    environment = child_environment(PYTHONPATH=os.pathsep.join(sys.path))
    done = subprocess.run(
        python("-m", module, *map(str, args)), env=environment, capture_output=True, text=True, timeout=240, check=False
    )
    assert done.returncode == 0, done.stderr[-4000:]


@pytest.mark.skipif(bool(_missing("dask")), reason=_missing("dask"))
def test_dask_writes_its_report(tmp_path: Path) -> None:
    path = write_json_lines(tmp_path / "a.jsonl", make_reviews(50))
    options = ("--engine", "dask", "--workers", "1", "--dask-report", str(tmp_path / "report.html"))
    _run("tenor", "prepare", path, "--out", tmp_path / "out", *options)
    assert "Task Stream" in (tmp_path / "report.html").read_text("utf-8")


@pytest.mark.soak
@needs_hosts
@pytest.mark.skipif(bool(_missing("dask")), reason=_missing("dask"))
@pytest.mark.skipif(shutil.which("openssl") is None, reason="openssl is not installed")
def test_dask_on_two_hosts_over_tls(tmp_path: Path) -> None:
    """Scheduler and job on one host, a worker on either; the bytes are those of local processes."""
    corpus = [str(write_json_lines(tmp_path / f"{n}.jsonl", make_reviews(200, seed=n))) for n in range(4)]
    prepare(corpus, tmp_path / "expected", PrepareSettings(workers=1))
    ca, cert, key = _certificates(tmp_path)
    secured = ("--tls-ca-file", ca, "--tls-cert", cert, "--tls-key", key)
    with two_hosts() as hosts, contextlib.ExitStack() as stack:
        address = f"tls://{hosts[0].address}:8786"
        scheduler = ("scheduler", "--host", hosts[0].address, "--port", "8786", "--no-dashboard", "--protocol", "tls")
        stack.enter_context(
            running(hosts[0].command(*python("-m", "dask", *scheduler, *secured)), TMPDIR=str(tmp_path))
        )
        for host in hosts:
            worker = ("worker", address, "--host", host.address, "--nthreads", "1", "--no-dashboard", *secured)
            folder = ("--local-directory", str(tmp_path / host.name))
            stack.enter_context(running(host.command(*python("-m", "dask", *worker, *folder)), TMPDIR=str(tmp_path)))
        options = ("--engine", "dask", "--cluster", address, "--tls-ca", ca, "--tls-cert", cert, "--tls-key", key)
        command = python("-m", "tenor", "prepare", *corpus, "--out", str(tmp_path / "out"), "--json", *options)
        with running(hosts[0].command(*command)) as job:
            finish(job, 60)
    assert hashes(tmp_path / "out") == hashes(tmp_path / "expected")


def _certificates(folder: Path) -> tuple[str, str, str]:
    """An authority's certificate, and one that it signed with its key: enough for all in a test."""
    ca, ca_key, cert, key, request = (str(folder / name) for name in ("ca.pem", "ca.key", "me.pem", "me.key", "me.csr"))
    make = ("openssl", "req", "-newkey", "rsa:2048", "-nodes")
    sign = ("openssl", "x509", "-req", "-in", request, "-CA", ca, "-CAkey", ca_key, "-CAcreateserial", "-out", cert)
    for command in (
        (*make, "-x509", "-subj", "/CN=authority", "-keyout", ca_key, "-out", ca),
        (*make, "-subj", "/CN=host", "-keyout", key, "-out", request),
        sign,
    ):
        subprocess.run(command, check=True, capture_output=True, timeout=60)
    return ca, cert, key


class Elsewhere:
    """Its workers stand in another folder than the job, as a cluster's do."""

    name, workers = "elsewhere", 1

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def run(self, stage: str, tasks: Sequence[Task], done: Done) -> list[Task]:
        with contextlib.chdir(self.folder):
            return [call(stage, task) for task in tasks]

    def close(self) -> None: ...


def test_relative_inputs_are_found_by_workers_in_another_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "elsewhere").mkdir()
    monkeypatch.chdir(tmp_path)
    lines = write_json_lines(Path("a.jsonl"), make_reviews(300))
    with lines.open("a") as file:
        file.write("no JSON\n")
    files = ["a.jsonl", str(write_csv(Path("b.csv.gz"), make_reviews(100, seed=1)))]
    prepare(files, "expected", PrepareSettings(workers=1))
    prepare_on(Elsewhere(tmp_path / "elsewhere"), files, "out")
    assert hashes(Path("out")) == hashes(Path("expected"))
    assert '"file": "a.jsonl", "line": 301' in Path("out/rejects.jsonl").read_text("utf-8")  # named as it was given


def test_relative_texts_are_found_from_another_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "elsewhere").mkdir()
    monkeypatch.chdir(tmp_path)
    Path("texts.txt").write_text("very good\nnot good\n", "utf-8")
    piece = whole(text_source("texts.txt"))
    monkeypatch.chdir(tmp_path / "elsewhere")
    assert [text for texts in read_piece_texts(piece) for text in texts.to_pylist()] == ["very good", "not good"]
    (tmp_path / "texts.txt").unlink()
    with pytest.raises(CorpusError, match=r"^texts\.txt: cannot be read"):
        list(read_piece_texts(piece))


@pytest.mark.parametrize(
    "settings",
    [
        EngineSettings("local", cluster="tcp://127.0.0.1:1"),
        EngineSettings("local", dask_report="x.html"),
        EngineSettings("spark", tls_ca="x"),
        pytest.param(
            EngineSettings("dask", cluster="tls://127.0.0.1:1"),
            marks=pytest.mark.skipif(bool(_missing("dask")), reason=_missing("dask")),
        ),
    ],
)
def test_settings_that_do_not_fit(settings: EngineSettings) -> None:
    with pytest.raises(UsageError):
        make_engine(settings)


def test_a_task_that_always_kills_its_worker_is_given_up(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tenor.engines.local.MAX_ATTEMPTS", 3)
    engine = make_engine(EngineSettings("local", workers=2))
    tasks = [{"folder": str(tmp_path), "deaths": 1000, "value": n} for n in range(2)]
    try:
        with pytest.raises(WorkerError, match="died"):
            engine.run("contracts.stages:die_often", tasks, lambda result: None)
    finally:
        engine.close()
