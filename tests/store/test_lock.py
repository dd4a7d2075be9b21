"""The lock of a folder, also for processes that are killed or have children."""

from __future__ import annotations

import errno
import fcntl
import os
import signal
import subprocess
import threading
import time
from pathlib import Path
from typing import Any

import pytest
from helpers.processes import python, running

from tenor.errors import UsageError
from tenor.store.lock import NAME, locked

HOLD = """
import subprocess, sys, time
from pathlib import Path
from tenor.store.lock import locked
with locked(Path(sys.argv[1])) as handle:
    child = subprocess.Popen(["sleep", "60"], pass_fds=(handle,)) if sys.argv[2] == "child" else None
    print(child.pid if child else 0, flush=True)
    time.sleep(60)
"""


def hold(folder: Path, how: str = "alone") -> Any:
    return running(python("-c", HOLD, str(folder), how))


def first_line(process: subprocess.Popen[bytes]) -> int:
    assert process.stdout is not None
    return int(process.stdout.readline())


def test_a_second_holder_is_refused_and_the_first_leaves_nothing(tmp_path: Path) -> None:
    folder = tmp_path / "deep" / "run"
    with locked(folder):
        for _ in range(2):
            with pytest.raises(UsageError, match=f"run: is in use by process {os.getpid()};"), locked(folder):
                pass
    assert list(folder.iterdir()) == []
    with locked(folder), pytest.raises(UsageError), locked(folder):
        pass


def test_a_killed_holder_frees_the_lock(tmp_path: Path) -> None:
    with hold(tmp_path) as process:
        first_line(process)
        with pytest.raises(UsageError, match=f"is in use by process {process.pid};"), locked(tmp_path):
            pass
        process.kill()
        process.wait()
    with locked(tmp_path):
        pass


def test_a_child_that_outlives_the_holder_keeps_the_lock(tmp_path: Path) -> None:
    with hold(tmp_path, "child") as process:
        child = first_line(process)
        process.kill()
        process.wait()
        with (
            pytest.raises(UsageError, match=f"a worker of process {process.pid}, which has ended"),
            locked(tmp_path, seconds=0.2),
        ):
            pass
        threading.Timer(0.2, os.kill, (child, signal.SIGKILL)).start()
        began = time.monotonic()
        with locked(tmp_path, seconds=10):
            assert 0.1 < time.monotonic() - began < 9


def test_a_lock_on_a_removed_file_does_not_count(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The last holder removes the file after we open it and before we lock it; others could lock a new file."""
    real, times = fcntl.flock, []

    def remove_first(handle: int, how: int) -> None:
        if not times:
            (tmp_path / NAME).unlink()
        times.append(how)
        real(handle, how)

    monkeypatch.setattr(fcntl, "flock", remove_first)
    with locked(tmp_path), pytest.raises(UsageError), locked(tmp_path):
        pass


def test_a_recreated_folder_keeps_the_lock_of_its_new_owner(tmp_path: Path) -> None:
    old, new = locked(tmp_path), locked(tmp_path)
    old.__enter__()
    (tmp_path / NAME).unlink()
    with new:
        old.__exit__(None, None, None)
        assert (tmp_path / NAME).exists()
    assert not (tmp_path / NAME).exists()


def test_a_link_is_not_followed(tmp_path: Path) -> None:
    (tmp_path / "other").write_text("precious")
    (tmp_path / NAME).symlink_to(tmp_path / "other")
    with pytest.raises(OSError), locked(tmp_path):
        pass
    assert (tmp_path / "other").read_text() == "precious"


def test_a_file_system_without_locks_is_accepted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def none(handle: int, how: int) -> None:
        raise OSError(errno.ENOLCK, "No locks available")

    monkeypatch.setattr(fcntl, "flock", none)
    with locked(tmp_path):
        pass
