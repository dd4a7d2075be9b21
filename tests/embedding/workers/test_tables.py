"""Workers take blocks from the tables that they share: each block goes to one of them."""

from __future__ import annotations

import fcntl
import select
import subprocess
from contextlib import closing

from helpers.processes import child_environment, python

from tenor.embedding.workers.tables import Tables

SHAPE, EACH = (7, 5, 4, 1), 3000
TAKE = """
import sys
from tenor.embedding.workers.tables import Tables
tables, times = Tables(*map(int, sys.argv[2:])), int(sys.argv[1])
print("ready", flush=True)
sys.stdin.readline()
print("taking", flush=True)
print(*(tables.take() for _ in range(times)))
"""


def start_worker(tables: Tables, times: int) -> subprocess.Popen[str]:
    """A process that is ready to take so many places."""
    command = python("-c", TAKE, str(times), *map(str, SHAPE), str(tables.handle))
    pipe, handles = subprocess.PIPE, (tables.handle,)
    worker = subprocess.Popen(
        command, env=child_environment(), pass_fds=handles, stdin=pipe, stdout=pipe, text=True, bufsize=1
    )
    assert worker.stdout is not None and worker.stdout.readline() == "ready\n"
    return worker


def go(worker: subprocess.Popen[str]) -> None:
    assert worker.stdin is not None
    worker.stdin.write("\n")
    worker.stdin.flush()


def finish(worker: subprocess.Popen[str]) -> list[int]:
    return [int(place) for place in worker.communicate(timeout=60)[0].removeprefix("taking\n").split()]


def test_no_place_is_taken_twice() -> None:
    with closing(Tables(*SHAPE)) as tables:
        workers = [start_worker(tables, EACH) for _ in range(2)]
        for worker in workers:
            go(worker)
        taken = [finish(worker) for worker in workers]
    assert sorted(taken[0] + taken[1]) == list(range(2 * EACH))
    assert taken[0] == sorted(taken[0])


def test_a_place_is_taken_only_when_nobody_else_is_taking_one() -> None:
    with closing(Tables(*SHAPE)) as tables:
        worker = start_worker(tables, 1)
        fcntl.lockf(tables.handle, fcntl.LOCK_EX)
        go(worker)
        assert worker.stdout is not None and worker.stdout.readline() == "taking\n"
        assert not select.select([worker.stdout], [], [], 1.0)[0]
        fcntl.lockf(tables.handle, fcntl.LOCK_UN)
        assert finish(worker) == [0]
