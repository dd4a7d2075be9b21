"""Writing a file: an unpredictable temporary name, a flush, a rename, and a flush of the folder, in this order."""

from __future__ import annotations

import os
import stat
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tenor.corpus.synthetic.generate import generate
from tenor.corpus.synthetic.settings import GenerateSettings
from tenor.errors import StoreError, TenorError, UsageError
from tenor.preparation.job.accounting import write_rejects
from tenor.preparation.job.folders import JobFolders
from tenor.preparation.job.outputs import link
from tenor.preparation.job.work_folder import WorkFolder
from tenor.preparation.tokeniser.vocabulary import Vocabulary
from tenor.store.atomic import replacing, write_bytes, write_json, writing
from tenor.store.staging import stage_data


def _record(monkeypatch: pytest.MonkeyPatch) -> list[tuple[str, str]]:
    """Record every flush and rename from now on, by name, in order."""
    events: list[tuple[str, str]] = []
    fsync, rename = os.fsync, os.replace

    def flush(handle: int) -> None:
        events.append(("flush", Path(f"/proc/self/fd/{handle}").readlink().name))
        fsync(handle)

    def replace(source: Any, target: Any) -> None:
        events.append(("rename", Path(target).name))
        rename(source, target)

    monkeypatch.setattr(os, "fsync", flush)
    monkeypatch.setattr(os, "replace", replace)
    return events


def _by_name(path: Path) -> None:
    with replacing(path) as temporary:
        temporary.write_bytes(b"x")


def _by_handle(path: Path) -> None:
    with writing(path) as file:
        file.write(b"x")


def _copied(path: Path) -> None:
    (path.parent / "source").write_bytes(b"x")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Path, "hardlink_to", lambda *_: (_ for _ in ()).throw(OSError("no links here")))
        link(path.parent / "source", path)


WRITERS: dict[str, Callable[[Path], object]] = {
    "replacing": _by_name,
    "writing": _by_handle,
    "write_bytes": lambda path: write_bytes(path, b"x"),
    "write_json": lambda path: write_json(path, {}),
    "vocabulary": lambda path: Vocabulary(["x"]).save(path),
    "rejects": lambda path: write_rejects(path, [], WorkFolder(str(path.parent))),
    "copy": _copied,
}


@pytest.mark.parametrize("writer", WRITERS)
def test_a_file_is_flushed_before_its_rename_and_the_folder_after(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, writer: str
) -> None:
    (tmp_path / "folder").mkdir()
    events = _record(monkeypatch)
    WRITERS[writer](tmp_path / "folder" / "f")
    (first, name), *rest = events
    assert first == "flush" and name.startswith(".f.") and name.endswith(".tmp")
    assert rest == [("rename", "f"), ("flush", "folder")]


@pytest.mark.parametrize("writer", WRITERS)
def test_a_link_with_a_predictable_name_is_not_written_through(tmp_path: Path, writer: str) -> None:
    victim = tmp_path / "victim"
    victim.write_text("precious")
    (tmp_path / f".f.{os.getpid()}.tmp").symlink_to(victim)
    (tmp_path / "f").symlink_to(victim)
    WRITERS[writer](tmp_path / "f")
    assert victim.read_text() == "precious"
    assert (tmp_path / "f").is_file() and not (tmp_path / "f").is_symlink()


def test_an_existing_temporary_name_is_not_opened(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Even if somebody could predict it."""
    monkeypatch.setattr("secrets.token_hex", lambda _: "known")
    (tmp_path / "victim").write_text("precious")
    (tmp_path / ".f.known.tmp").symlink_to(tmp_path / "victim")
    for write in (
        _by_name,
        lambda path: write_bytes(path, b"x"),
        lambda path: generate(path, GenerateSettings(rows=1)),
    ):
        with pytest.raises(FileExistsError):
            write(tmp_path / "f")
    assert (tmp_path / "victim").read_text() == "precious" and not (tmp_path / "f").exists()


def test_a_file_that_replaces_ours_does_not_get_the_final_name(tmp_path: Path) -> None:
    (tmp_path / "f").write_text("before")
    with (
        pytest.raises(TenorError, match="was replaced by another file while it was written"),
        writing(tmp_path / "f") as file,
    ):
        file.write(b"ours")
        [temporary] = tmp_path.glob(".f.*.tmp")
        temporary.unlink()
        temporary.write_text("theirs")
    assert [path.name for path in tmp_path.iterdir()] == ["f"] and (tmp_path / "f").read_text() == "before"


def test_a_failed_write_leaves_only_the_old_file(tmp_path: Path) -> None:
    (tmp_path / "f").write_text("before")
    with pytest.raises(StoreError), writing(tmp_path / "f") as file:
        file.write(b"half")
        raise StoreError("stopped")
    assert [path.name for path in tmp_path.iterdir()] == ["f"] and (tmp_path / "f").read_text() == "before"


def test_a_file_has_the_permissions_of_the_umask(tmp_path: Path) -> None:
    before = os.umask(0o027)
    try:
        write_bytes(tmp_path / "f", b"x")
    finally:
        os.umask(before)
    assert stat.S_IMODE((tmp_path / "f").stat().st_mode) == 0o640


def test_a_lock_file_that_is_a_link_is_not_opened(tmp_path: Path) -> None:
    (tmp_path / "cache").mkdir()
    (tmp_path / "cache" / ".cache.lock").symlink_to(tmp_path / "made")
    with pytest.raises(OSError, match="symbolic links"):
        stage_data(tmp_path / "data", tmp_path / "cache")
    assert not (tmp_path / "made").exists()


def test_a_working_folder_that_is_a_link_is_refused(tmp_path: Path) -> None:
    (tmp_path / "precious").mkdir()
    (tmp_path / "precious" / "file").write_text("precious")
    (tmp_path / ".out.preparing").symlink_to("precious")
    with (
        pytest.raises(UsageError, match=r"\.out\.preparing: is a link"),
        JobFolders(tmp_path / "out", "1" * 64).working(),
    ):
        pass
    assert (tmp_path / "precious" / "file").exists()


def test_links_inside_a_working_folder_are_removed_not_followed(tmp_path: Path) -> None:
    (tmp_path / "precious").mkdir()
    (tmp_path / "precious" / "file").write_text("precious")
    (tmp_path / ".out.preparing").mkdir()
    (tmp_path / ".out.preparing" / "pieces").symlink_to(tmp_path / "precious")
    (tmp_path / ".out.preparing" / "key").symlink_to("/dev/zero")
    with JobFolders(tmp_path / "out", "1" * 64).working() as work:
        assert not list(Path(work.path).iterdir())
    assert (tmp_path / "precious" / "file").exists()
