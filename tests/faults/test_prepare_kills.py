"""A job killed at any moment leaves no incomplete result, and the same command finishes the job."""

from __future__ import annotations

import contextlib
import os
import random
import resource
import signal
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest
from helpers.corpora import make_reviews, write_json_lines
from helpers.processes import child_environment, kill_group, python
from preparation.job.test_prepare import hashes

from tenor.corpus.synthetic.generate import generate
from tenor.corpus.synthetic.settings import GenerateSettings
from tenor.errors import Stopped, UsageError
from tenor.preparation.job.prepare import prepare
from tenor.preparation.job.stages import mapping
from tenor.preparation.settings import PrepareSettings
from tenor.progress import Silent
from tenor.store.verify import verify_data

FILES = 8


@pytest.fixture(scope="module")
def corpus(tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    folder = tmp_path_factory.mktemp("corpus")
    reviews = make_reviews(8000)
    return [write_json_lines(folder / f"{n}.jsonl", reviews[n::FILES]) for n in range(FILES)]


@pytest.fixture(scope="module")
def expected(corpus: list[Path], tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    out = tmp_path_factory.mktemp("expected") / "out"
    prepare(corpus, out, PrepareSettings(workers=1))
    return hashes(out)


def _start(corpus: list[Path], out: Path, *more: str) -> subprocess.Popen[bytes]:
    command = python("-m", "tenor", "prepare", *map(str, corpus), "--out", str(out), "--workers", "2", "--json", *more)
    return subprocess.Popen(
        command, env=child_environment(), stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, start_new_session=True
    )


def _finish(process: subprocess.Popen[bytes]) -> int:
    try:
        _, said = process.communicate(timeout=120)
    finally:
        kill_group(process)
    print(said.decode()[-3000:])  # shown by pytest when the test fails
    return process.returncode


def _whole_or_absent(out: Path) -> None:
    if out.exists():
        verify_data(out)
    leftovers = [path.name for path in out.parent.iterdir() if path != out]
    assert all(name.startswith(".") for name in leftovers), leftovers


def _check_kills(corpus: list[Path], expected: dict[str, str], folder: Path, kills: int, seed: int) -> None:
    rng = random.Random(seed)
    for number in range(kills):
        out = folder / str(number) / "out"
        out.parent.mkdir(parents=True)
        process = _start(corpus, out)
        time.sleep(rng.uniform(0.5, 4.0))
        with_signal = rng.choice([signal.SIGKILL, signal.SIGKILL, signal.SIGTERM])
        if process.poll() is None:
            process.send_signal(with_signal)
        code = _finish(process)
        assert code in (0, -signal.SIGKILL, 143, -signal.SIGTERM)
        _whole_or_absent(out)
        assert _finish(_start(corpus, out)) == 0
        assert hashes(out) == expected
        assert [path.name for path in out.parent.iterdir()] == ["out"]


def test_the_whole_job_killed(corpus: list[Path], expected: dict[str, str], tmp_path: Path) -> None:
    _check_kills(corpus, expected, tmp_path, 2, seed=1)


@pytest.mark.soak
@pytest.mark.timeout(1800)
def test_the_whole_job_killed_often(corpus: list[Path], expected: dict[str, str], tmp_path: Path) -> None:
    _check_kills(corpus, expected, tmp_path, 60, seed=2)


# What the worker processes of each engine are called.
WORKERS = {"local": "tenor.engines.worker", "dask": "spawn_main", "spark": "pyspark.daemon"}
HEAVY = [pytest.param(name, marks=pytest.mark.soak) for name in ("dask", "spark")]


@pytest.mark.parametrize("engine", ["local", *HEAVY])
def test_workers_killed_from_the_start_on(
    corpus: list[Path], expected: dict[str, str], tmp_path: Path, engine: str
) -> None:
    process = _start(corpus, tmp_path / "out", "--engine", engine)
    assert _kill_workers(process, engine, random.Random(3), (0.05, 0.4)) == 5
    assert _finish(process) == 0
    assert hashes(tmp_path / "out") == expected


@pytest.fixture(scope="module")
def large(tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    """40 files of 12 MB, enough for some seconds of work."""
    folder = tmp_path_factory.mktemp("large")
    for number in range(40):
        generate(folder / f"{number}.jsonl", GenerateSettings(rows=25_000, seed=number))
    return sorted(folder.iterdir())


@pytest.mark.soak
@pytest.mark.timeout(900)
@pytest.mark.parametrize("engine", WORKERS)
@pytest.mark.parametrize("seed", range(2))
def test_workers_killed_while_they_work(large: list[Path], tmp_path: Path, engine: str, seed: int) -> None:
    prepare(large, tmp_path / "expected", PrepareSettings(workers=2))
    process = _start(large, tmp_path / "out", "--engine", engine)
    pieces = ".out.preparing/*/pieces/*"
    while process.poll() is None and not any(tmp_path.glob(pieces)):
        time.sleep(0.02)
    assert _kill_workers(process, engine, random.Random(seed), (0.1, 0.8)) == 5
    assert _finish(process) == 0
    assert hashes(tmp_path / "out") == hashes(tmp_path / "expected")


def _kill_workers(process: subprocess.Popen[bytes], engine: str, rng: random.Random, pause: tuple[float, float]) -> int:
    """Kill up to five workers, one after another, until the job ends; return how many were killed."""
    killed = 0
    while process.poll() is None and killed < 5:
        time.sleep(rng.uniform(*pause))
        if workers := _workers(process.pid, WORKERS[engine]):
            with contextlib.suppress(ProcessLookupError):
                os.kill(rng.choice(workers), signal.SIGKILL)
                killed += 1
    return killed


def _workers(pid: int, name: str) -> list[int]:
    """The processes of that name, without their parents of the same name, which Spark has."""
    parents = {}
    for child in psutil.Process(pid).children(recursive=True) if psutil.pid_exists(pid) else []:
        with contextlib.suppress(psutil.Error):
            if name in " ".join(child.cmdline()):
                parents[child.pid] = child.ppid()
    return sorted(set(parents) - set(parents.values()))


class _StopAfter(Silent):
    """Progress that stops the job after a number of finished tasks."""

    def __init__(self, tasks: int) -> None:
        self.left = tasks

    def advance(self, amount: float, note: str = "") -> None:
        self.left -= 1
        if self.left < 0:
            raise Stopped(15)


@pytest.mark.parametrize("tasks", [0, 3, FILES, FILES + 1, 2 * FILES + 1, 3 * FILES + 3])
def test_finished_tasks_are_not_run_again(
    corpus: list[Path], expected: dict[str, str], tmp_path: Path, tasks: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    settings = PrepareSettings(workers=1)
    with pytest.raises(Stopped):
        prepare(corpus, tmp_path / "out", settings, _StopAfter(tasks))
    assert not (tmp_path / "out").exists()
    read: list[str] = []
    original = mapping.read_piece
    monkeypatch.setattr(mapping, "read_piece", lambda piece: read.append(piece.source.path) or original(piece))
    prepare(corpus, tmp_path / "out", settings)
    assert len(read) == max(0, FILES - tasks - 1)  # the one that was just finished is kept too
    assert hashes(tmp_path / "out") == expected


def test_the_result_may_lie_among_the_input(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    settings = PrepareSettings(workers=1)
    for number in range(3):
        write_json_lines(Path(f"{number}.jsonl"), make_reviews(100, seed=number))
    with pytest.raises(Stopped):
        prepare(".", "data", settings, _StopAfter(5))
    first = prepare(".", "data", settings)
    assert first.rows_read == 300
    assert prepare(".", "data", settings) == first  # taken as it is
    assert prepare(sorted(Path().glob("*")), "data", settings) == first
    assert prepare(".", "more", settings).manifest_sha256 == first.manifest_sha256


@contextlib.contextmanager
def _small_files(limit: int) -> Iterator[None]:
    """Let writing fail when a file grows past the limit, as on a full disk."""
    _, most = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (limit, most))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (most, most))


@pytest.mark.parametrize("limit", [40, 1 << 10, 1 << 17, 1 << 18])  # bytes of a file; each limit stops another stage
def test_a_full_disk(corpus: list[Path], expected: dict[str, str], tmp_path: Path, limit: int) -> None:
    with _small_files(limit), pytest.raises(OSError, match="too large") as raised:
        prepare(corpus, tmp_path / "out", PrepareSettings(workers=1))
    assert Path(raised.value.filename).is_relative_to(tmp_path)
    assert not (tmp_path / "out").exists()
    prepare(corpus, tmp_path / "out", PrepareSettings(workers=1))
    assert hashes(tmp_path / "out") == expected


def test_a_full_disk_while_generating(tmp_path: Path) -> None:
    with _small_files(1 << 10), pytest.raises(OSError, match="too large") as raised:
        generate(tmp_path / "r.jsonl", GenerateSettings(rows=100))
    assert raised.value.filename == str(tmp_path / "r.jsonl")
    assert not list(tmp_path.iterdir())


def test_two_jobs_at_once_for_one_folder(corpus: list[Path], tmp_path: Path) -> None:
    class Second(Silent):
        def advance(self, amount: float, note: str = "") -> None:
            with pytest.raises(UsageError, match="being prepared by another process"):
                prepare(corpus, tmp_path / "out", PrepareSettings(workers=1))

    prepare(corpus, tmp_path / "out", PrepareSettings(workers=1), Second())


def test_a_changed_input_starts_afresh(corpus: list[Path], tmp_path: Path) -> None:
    path = tmp_path / "r.jsonl"
    path.write_bytes(corpus[0].read_bytes())
    with pytest.raises(Stopped):
        prepare([path, *corpus[1:3]], tmp_path / "out", PrepareSettings(workers=1), _StopAfter(2))
    path.write_bytes(corpus[3].read_bytes())
    prepare([path, *corpus[1:3]], tmp_path / "out", PrepareSettings(workers=1))
    prepare([corpus[3], *corpus[1:3]], tmp_path / "fresh", PrepareSettings(workers=1))
    assert hashes(tmp_path / "out") == hashes(tmp_path / "fresh")
