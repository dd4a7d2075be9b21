"""Memory stays bounded for a line of gigabytes and for a corpus of gigabytes."""

from __future__ import annotations

import json
import os
import subprocess
import threading
import time
from pathlib import Path

import psutil
import pytest
from helpers.processes import child_environment, python

from tenor.corpus.synthetic.generate import generate
from tenor.corpus.synthetic.settings import GenerateSettings

LIMIT = 1 << 30


def _anonymous(pid: int) -> int:
    try:
        lines = Path(f"/proc/{pid}/status").read_text().splitlines()
        return sum(int(line.split()[1]) * 1024 for line in lines if line.startswith(("RssAnon", "RssShmem")))
    except (OSError, ProcessLookupError):
        return 0


def _peak(*args: str) -> tuple[int, dict[str, object], float]:
    """(peak anonymous memory of any process of the job, its result, its processor seconds)."""
    process = subprocess.Popen(
        python("-m", "tenor", "prepare", *args, "--json"), env=child_environment(), stdout=subprocess.PIPE
    )
    peak = 0

    def watch() -> None:
        nonlocal peak
        while process.poll() is None:
            try:
                pids = [process.pid, *(child.pid for child in psutil.Process(process.pid).children(recursive=True))]
            except psutil.Error:
                return
            peak = max(peak, *map(_anonymous, pids))
            time.sleep(0.02)

    watcher = threading.Thread(target=watch)
    before = os.times()
    watcher.start()
    out, _ = process.communicate()
    watcher.join()
    after = os.times()
    assert process.returncode == 0
    seconds = after.children_user + after.children_system - before.children_user - before.children_system
    return peak, json.loads(out), seconds


def _with_long_line(path: Path, size: int) -> Path:
    generate(path, GenerateSettings(rows=2000))
    with path.open("ab") as file:
        file.write(b'{"reviewText": "')
        for _ in range(size >> 20):
            file.write(b"word " * ((1 << 20) // 5))
        file.write(b'", "overall": 5.0}\n')
    return path


def test_a_long_line(tmp_path: Path) -> None:
    path = _with_long_line(tmp_path / "r.jsonl", 100 << 20)
    peak, result, _ = _peak(str(path), "--out", str(tmp_path / "out"), "--workers", "2")
    assert result["rejected"] == {"line too long": 1}
    assert peak < LIMIT // 2


@pytest.mark.soak
@pytest.mark.timeout(900)
def test_a_line_of_two_gigabytes(tmp_path: Path) -> None:
    path = _with_long_line(tmp_path / "r.jsonl", 2 << 30)
    peak, result, _ = _peak(str(path), "--out", str(tmp_path / "out"), "--workers", "2")
    assert result["rejected"] == {"line too long": 1}
    assert peak < LIMIT


@pytest.mark.soak
@pytest.mark.timeout(1800)
def test_two_gigabytes_cost_what_two_hundred_megabytes_cost(tmp_path: Path) -> None:
    costs = []
    for name, rows in (("small", 425_000), ("large", 4_250_000)):
        raw = tmp_path / f"{name}.jsonl"
        made = generate(raw, GenerateSettings(rows=rows, seed=3))
        peak, _, seconds = _peak(str(raw), "--out", str(tmp_path / name), "--workers", "2")
        assert peak < LIMIT
        costs.append(seconds / made.bytes)
    assert costs[1] < 1.15 * costs[0]


@pytest.mark.soak
@pytest.mark.timeout(1800)
def test_a_packed_gigabyte(tmp_path: Path) -> None:
    made = generate(tmp_path / "r.jsonl", GenerateSettings(rows=2_100_000, seed=3))
    subprocess.run(["gzip", "-1", str(tmp_path / "r.jsonl")], check=True)
    peak, result, _ = _peak(str(tmp_path / "r.jsonl.gz"), "--out", str(tmp_path / "out"), "--workers", "1")
    assert made.bytes > 900 << 20 and result["rows_read"] == 2_100_000
    assert peak < LIMIT // 2
