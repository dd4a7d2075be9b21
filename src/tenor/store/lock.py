"""A lock on a folder, for one process at a time. The system frees it when its last holder ends, even by a kill."""

from __future__ import annotations

import contextlib
import errno
import fcntl
import os
import time
from collections.abc import Iterator
from pathlib import Path

from tenor.errors import UsageError

NAME = ".lock"
SECONDS_BETWEEN_TRIES = 0.05
NO_LOCKS = (errno.ENOLCK, errno.ENOSYS, errno.EOPNOTSUPP)  # errors of file systems without locks


@contextlib.contextmanager
def locked(folder: Path, seconds: float = 0.0) -> Iterator[int]:
    """Create the folder and hold its lock.

    Gives the file descriptor of the lock; a child process that inherits it holds the lock too.

    Args:
        folder: The folder. Its file `.lock` is locked, because network file systems cannot lock folders, and names the
            holder.
        seconds: How long to wait for another process to release the lock.

    Raises:
        UsageError: Another process holds the lock.
    """
    path = folder / NAME
    handle = _take(path, time.monotonic() + seconds)
    try:
        yield handle
    finally:
        if _is_at(path, handle):
            path.unlink(missing_ok=True)  # a process that has already opened it sees this and tries again
        with contextlib.suppress(OSError):
            fcntl.flock(handle, fcntl.LOCK_UN)  # also for processes forked in the meantime
        os.close(handle)


def _take(path: Path, until: float) -> int:
    while True:
        handle = _open(path)
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as error:
            holder = _holder(handle)
            os.close(handle)
            if time.monotonic() >= until:
                remedy = "wait until that process ends, or choose another folder"
                raise UsageError(f"is in use by {holder}", where=path.parent, remedy=remedy) from error
            time.sleep(SECONDS_BETWEEN_TRIES)
            continue
        except OSError as error:
            if error.errno not in NO_LOCKS:
                os.close(handle)
                raise
        if _is_at(path, handle):
            _sign(handle)
            return handle
        os.close(handle)  # the last holder removed the file before we got the lock


def _open(path: Path) -> int:
    while True:
        path.parent.mkdir(parents=True, exist_ok=True)
        with contextlib.suppress(FileNotFoundError):  # somebody removed the folder in between
            return os.open(path, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC, 0o644)


def _is_at(path: Path, handle: int) -> bool:
    try:
        return os.path.samestat(path.lstat(), os.fstat(handle))
    except FileNotFoundError:
        return False


def _sign(handle: int) -> None:
    with contextlib.suppress(OSError):  # on a full disk, messages cannot name the holder
        os.ftruncate(handle, 0)
        os.pwrite(handle, f"{os.getpid()} {os.uname().nodename}\n".encode(), 0)


def _holder(handle: int) -> str:
    pid, _, host = os.pread(handle, 300, 0).decode("utf-8", "replace").strip().partition(" ")
    if not pid.isdecimal():
        return "another process"
    if host != os.uname().nodename:
        return f"process {pid} on {host}"
    return f"process {pid}" if _is_alive(int(pid)) else f"a worker of process {pid}, which has ended"


def _is_alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except OSError:  # a process of another user
        pass
    return True
