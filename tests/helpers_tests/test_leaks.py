"""Each kind of leak is found, and a process or thread that ends in time is not a leak."""

import contextlib
import os
import subprocess
import sys
import tempfile
import threading
from pathlib import Path

import pytest
from helpers.leaks import Snapshot


def leaks_of(action, patience: float = 0.2) -> tuple[list[str], object]:  # type: ignore[no-untyped-def]
    before = Snapshot.take()
    kept = action()
    return before.leaks(patience), kept


def test_a_clean_test_leaves_nothing(tmp_path: Path) -> None:
    assert leaks_of(lambda: (tmp_path / "file").write_text("fine"))[0] == []


def test_a_child_process_is_seen() -> None:
    found, child = leaks_of(lambda: subprocess.Popen([sys.executable, "-c", "import time; time.sleep(60)"]))
    with child:  # type: ignore[attr-defined]
        child.kill()  # type: ignore[attr-defined]
    assert len(found) == 1 and "time.sleep(60)" in found[0]


def test_a_thread_is_seen_and_one_that_ends_is_not() -> None:
    stop = threading.Event()

    def start() -> threading.Thread:
        thread = threading.Thread(target=stop.wait, name="forgotten")
        thread.start()
        return thread

    found, thread = leaks_of(start)
    assert found == ["thread forgotten"]
    stop.set()
    thread.join()  # type: ignore[attr-defined]
    assert leaks_of(lambda: threading.Thread(target=lambda: None).start(), patience=2)[0] == []


def test_an_open_file_is_seen(tmp_path: Path) -> None:
    found, file = leaks_of(lambda: (tmp_path / "open").open("w"))
    file.close()  # type: ignore[attr-defined]
    assert found == [f"open {tmp_path / 'open'}"]


def test_a_variable_is_seen_and_restored(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TENOR_TEST_A", "before")
    before = Snapshot.take()
    os.environ["TENOR_TEST_A"] = "after"
    os.environ["TENOR_TEST_B"] = "new"
    assert before.leaks(0) == ["variable TENOR_TEST_A", "variable TENOR_TEST_B"]
    before.restore()
    assert os.environ["TENOR_TEST_A"] == "before" and "TENOR_TEST_B" not in os.environ


@pytest.mark.parametrize("place", ["working directory", "temporary folder"])
def test_a_file_left_is_seen(place: str, tmp_path: Path) -> None:
    with contextlib.chdir(tmp_path):
        folder = tmp_path if place == "working directory" else Path(tempfile.gettempdir())
        found, _ = leaks_of(lambda: (folder / "left").write_text(""))
    (folder / "left").unlink()
    assert found == [f"file {folder / 'left'}"]


def test_a_changed_working_directory_is_seen(tmp_path: Path) -> None:
    before = Snapshot.take()
    os.chdir(tmp_path)
    assert f"working directory {tmp_path}" in before.leaks(0)
    before.restore()
    assert before.leaks(0) == []
