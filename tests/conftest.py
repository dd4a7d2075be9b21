"""Every test must leave the process, the disk and the environment as it found them."""

from __future__ import annotations

import gc
import os
import sys
import tempfile
from collections.abc import Iterator

import pytest
from helpers.leaks import Snapshot
from hypothesis import settings

# Tests start hundreds of processes, and each would compile every module again if nobody were allowed to keep bytecode.
sys.dont_write_bytecode = False
os.environ.pop("PYTHONDONTWRITEBYTECODE", None)

# No example database: it would be a file left in the working directory. No deadline: machines differ.
settings.register_profile("tenor", database=None, deadline=None, derandomize=True)
settings.load_profile("tenor")


@pytest.fixture(scope="session", autouse=True)
def quick_collections() -> None:
    """Exempt what the test files have imported from garbage collection: a collection takes milliseconds, not 0.3 s.

    `no_leaks` collects until the files are closed that an exception still refers to.
    """
    gc.collect()
    gc.freeze()


@pytest.fixture(scope="session", autouse=True)
def temporary_folder(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """Give this pytest process and its children their own temporary folder: every file left in it is a leak of ours.

    Each pytest-xdist worker has its own folder, so tests that run side by side do not see each other's files.
    """
    patch = pytest.MonkeyPatch()
    folder = tmp_path_factory.mktemp("t")
    patch.setenv("TMPDIR", str(folder))
    patch.setattr(tempfile, "tempdir", str(folder))
    yield
    patch.undo()


@pytest.fixture(autouse=True)
def no_leaks(temporary_folder: None) -> Iterator[None]:
    """Fail a test that leaves behind a process, a thread, an open file, an environment variable or a file."""
    before = Snapshot.take()
    yield
    if found := before.leaks():
        before.restore()
        pytest.fail("left behind: " + "; ".join(found))
