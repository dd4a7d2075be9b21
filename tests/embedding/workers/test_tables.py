"""Workers take blocks from the tables that they share: each block goes to one of them."""

from __future__ import annotations

import subprocess
from contextlib import closing

from helpers.processes import child_environment, python

from tenor.embedding.workers.tables import Tables

SHAPE, EACH = (7, 5, 4, 1), 3000
TAKE = """
import sys
from tenor.embedding.workers.tables import Tables
tables = Tables(*map(int, sys.argv[1:]))
print("ready", flush=True)
sys.stdin.readline()
print(*(tables.take() for _ in range(EACH)))
"""


def test_no_place_is_taken_twice() -> None:
    with closing(Tables(*SHAPE)) as tables:
        command = python("-c", TAKE.replace("EACH", str(EACH)), *map(str, SHAPE), str(tables.handle))
        workers = [
            subprocess.Popen(
                command,
                env=child_environment(),
                pass_fds=(tables.handle,),
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                text=True,
            )
            for _ in range(2)
        ]
        for worker in workers:
            assert worker.stdout is not None and worker.stdout.readline() == "ready\n"
        for worker in workers:
            assert worker.stdin is not None
            worker.stdin.write("\n")
            worker.stdin.flush()
        taken = [[int(place) for place in worker.communicate(timeout=60)[0].split()] for worker in workers]
    assert sorted(taken[0] + taken[1]) == list(range(2 * EACH))
    assert taken[0] == sorted(taken[0])
