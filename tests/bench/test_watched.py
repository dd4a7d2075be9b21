"""Programs whose memory is watched: shared memory counts once, and failures are named."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest

from tenor.bench.peers import watched
from tenor.bench.peers.watched import memory_of, run_watched
from tenor.errors import WorkerError

HUNGRY = """
import json, mmap, os, sys, time
megabytes = int(sys.argv[1])
shared = mmap.mmap(-1, megabytes << 20)  # the child has it, too
for _ in range(megabytes):
    shared.write(b"x" * (1 << 20))
if (child := os.fork()) == 0:
    total = sum(shared[::4096])  # the child touches every page
    time.sleep(0.6)
    os._exit(0)
os.waitpid(child, 0)
print(json.dumps({"answer": 42}))
"""


@pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")
def test_memory_that_two_processes_share_counts_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "hungry.py").write_text(HUNGRY)
    monkeypatch.syspath_prepend(tmp_path)
    little, much = run_watched("hungry", "1"), run_watched("hungry", "101")
    assert little["answer"] == much["answer"] == 42
    assert much["memory_mb"] - little["memory_mb"] == pytest.approx(100 * (1 << 20) / 1e6, rel=0.1)


def test_a_program_that_fails_is_named() -> None:
    with pytest.raises(WorkerError, match=r"json.tool failed \(exit code 1\): Expecting value"):
        run_watched("json.tool")


def test_a_process_that_has_ended_has_no_memory() -> None:
    process = os.fork()
    if process == 0:
        os._exit(0)
    os.waitpid(process, 0)
    assert memory_of(process) == 0


def test_a_look_reads_counters_of_the_kernel_and_walks_no_pages(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A process and its two children, one of which has just ended; there are no files but these."""
    monkeypatch.setattr(watched, "PROCESSES", tmp_path)
    for process, kinds, children in (("7", (100, 30, 5), "8 9"), ("8", (20, 40, 50), "")):
        (tmp_path / process / "task" / process).mkdir(parents=True)
        (tmp_path / process / "task" / process / "children").write_text(children)
        rows = [f"Rss{name}:\t  {kb} kB" for name, kb in zip(("Anon", "File", "Shmem"), kinds, strict=True)]
        (tmp_path / process / "status").write_text("\n".join(["Name:\tx: y", *rows]))
    (tmp_path / "9" / "task").mkdir(parents=True)
    (tmp_path / "9" / "status").write_text("Name:\tended\nState:\tZ (zombie)\n")
    assert memory_of(7) == 1024 * (100 + 20 + 40 + 50)
