"""`helpers.workers` names every failure and leaves nothing running."""

import os
import signal
import subprocess
import sys
import time

import psutil
import pytest
from helpers.workers import WorkerFailure, spawn_workers


def place(offset: int) -> list[int]:
    return [int(os.environ["RANK"]) + offset, int(os.environ["WORLD_SIZE"]), int(os.environ["LOCAL_RANK"])]


def die(rank: int, how: str) -> None:
    """One worker fails; the others would wait for a minute."""
    if int(os.environ["RANK"]) != rank:
        time.sleep(60)
    print("last words", file=sys.stderr, flush=True)
    if how == "signal":
        os.kill(os.getpid(), signal.SIGKILL)
    if how == "raise":
        raise ValueError("a named reason")
    sys.exit(7)


def hang(rank: int) -> None:
    if int(os.environ["RANK"]) == rank:
        time.sleep(60)


def leave_grandchild() -> None:
    subprocess.Popen([sys.executable, "-c", "import time; time.sleep(60)"])


def warn() -> None:
    import warnings

    warnings.warn("a warning in a worker", stacklevel=1)


def test_results_come_in_order_of_rank() -> None:
    assert spawn_workers(3, f"{__file__}:place", 30, offset=10) == [[10, 3, 0], [11, 3, 1], [12, 3, 2]]


def test_modules_are_found_by_name() -> None:
    assert spawn_workers(1, "helpers.processes:describe_exit", 30, code=-9) == ["was killed by SIGKILL"]


@pytest.mark.parametrize(
    ("how", "words"), [("signal", "was killed by SIGKILL"), ("raise", "a named reason"), ("exit", "exited with code 7")]
)
def test_a_dead_worker_is_named_and_the_others_end(how: str, words: str) -> None:
    began = time.monotonic()
    with pytest.raises(WorkerFailure) as failure:
        spawn_workers(3, f"{__file__}:die", 30, rank=1, how=how)
    assert "worker 1 of 3" in str(failure.value)
    assert words in str(failure.value)
    assert "last words" in str(failure.value)
    assert time.monotonic() - began < 20
    assert not psutil.Process().children()


def test_a_hang_is_named_with_where_it_hangs() -> None:
    with pytest.raises(WorkerFailure, match=r"worker 1 of 2 was still running after 2 s") as failure:
        spawn_workers(2, f"{__file__}:hang", 2, rank=1)
    assert "in hang" in str(failure.value)


def test_a_grandchild_left_behind_is_a_failure() -> None:
    with pytest.raises(WorkerFailure, match="worker 0 of 1 left processes behind"):
        spawn_workers(1, f"{__file__}:leave_grandchild", 30)


def test_a_warning_in_a_worker_is_an_error() -> None:
    with pytest.raises(WorkerFailure, match="a warning in a worker"):
        spawn_workers(1, f"{__file__}:warn", 30)
