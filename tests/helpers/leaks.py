"""Find what a test leaves behind by comparing snapshots taken before and after it."""

from __future__ import annotations

import contextlib
import dataclasses
import gc
import os
import sysconfig
import tempfile
import threading
import time
from collections import Counter
from pathlib import Path

import psutil

# Libraries keep these for the life of the process, by design.
_LASTING_THREADS = ("fsspecIO", "pydevd")
_LASTING_PROCESSES = ("multiprocessing.resource_tracker", "multiprocessing.forkserver")
_LASTING_VARIABLES = ("PYTEST_CURRENT_TEST", "COLUMNS", "LINES", "TORCHINDUCTOR_CACHE_DIR")
_LASTING_FILES = ("__pycache__", "torchinductor_")
_FDS = "/proc/self/fd"
# Libraries open devices, event counters and files of their own packages (matplotlib keeps fonts open).
_PACKAGES = (str(Path(sysconfig.get_path(name)).resolve()) for name in ("purelib", "platlib"))
_LASTING_HANDLES = ("/dev/", "/proc/", "/sys/", "anon_inode:", *_PACKAGES)


@dataclasses.dataclass(frozen=True)
class Snapshot:
    """The state of this process that a test must leave unchanged."""

    processes: frozenset[int]
    threads: frozenset[int]
    handles: Counter[str]
    variables: dict[str, str]
    folder: str
    files: frozenset[str]

    @classmethod
    def take(cls) -> Snapshot:
        return cls(
            frozenset(_processes()),
            frozenset(_threads()),
            Counter(_handles()),
            {name: value for name, value in os.environ.items() if name not in _LASTING_VARIABLES},
            os.getcwd(),  # noqa: PTH109
            frozenset(_files()),
        )

    def leaks(self, patience: float = 2.0) -> list[str]:
        """List what appeared since the snapshot; processes and threads get `patience` seconds to end."""
        until = time.monotonic() + patience
        while (found := self._compare()) and time.monotonic() < until:
            gc.collect()
            time.sleep(0.05)
        return found

    def _compare(self) -> list[str]:
        now = Snapshot.take()
        found = [f"process {pid}: {_command(pid)}" for pid in now.processes - self.processes]
        found += [f"thread {_threads()[ident]}" for ident in now.threads - self.threads if ident in _threads()]
        found += [f"open {name}" for name in (now.handles - self.handles)]
        names = sorted(now.variables.keys() | self.variables.keys())
        found += [f"variable {name}" for name in names if now.variables.get(name) != self.variables.get(name)]
        found += [f"file {name}" for name in sorted(now.files - self.files)]
        return found + ([f"working directory {now.folder}"] if now.folder != self.folder else [])

    def restore(self) -> None:
        """Undo what can be undone, so that a leaking test does not fail the next one."""
        for pid in set(_processes()) - self.processes:
            with contextlib.suppress(psutil.Error):
                psutil.Process(pid).kill()
        os.chdir(self.folder)
        for name in set(os.environ) - set(self.variables) - set(_LASTING_VARIABLES):
            del os.environ[name]
        os.environ.update(self.variables)


def _processes() -> list[int]:
    if _has_no_child():
        return []
    children = psutil.Process().children(recursive=True)
    return [child.pid for child in children if not any(word in _command(child.pid) for word in _LASTING_PROCESSES)]


def _has_no_child() -> bool:
    """Ask the kernel, which takes microseconds; psutil reads a file for each process of the machine."""
    try:
        os.waitid(os.P_ALL, 0, os.WEXITED | os.WNOHANG | os.WNOWAIT)
    except ChildProcessError:
        return True
    return False


def _command(pid: int) -> str:
    try:
        return " ".join(psutil.Process(pid).cmdline()) or "(ended, not waited for)"
    except psutil.Error:
        return "(gone)"


def _threads() -> dict[int | None, str]:
    running = threading.enumerate()
    return {t.ident: t.name for t in running if not t.name.startswith(_LASTING_THREADS)}


def _handles() -> list[str]:
    """Return the files, sockets and pipes that are open, except those that libraries keep open by design."""
    targets = []
    for descriptor in os.listdir(_FDS) if os.path.isdir(_FDS) else []:  # noqa: PTH112, PTH208 - Path takes 4 times as long
        with contextlib.suppress(OSError):
            targets.append(os.readlink(f"{_FDS}/{descriptor}"))  # noqa: PTH115
    return [t for t in targets if not t.startswith(_LASTING_HANDLES)]


def _files() -> list[str]:
    """Return the paths in the working directory and in the temporary folder."""
    places = {os.getcwd(), tempfile.gettempdir()}  # noqa: PTH109
    there = [(place, name) for place in places if os.path.isdir(place) for name in os.listdir(place)]  # noqa: PTH112, PTH208
    return [f"{place}/{name}" for place, name in there if not name.startswith(_LASTING_FILES)]
