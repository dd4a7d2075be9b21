"""The work folder of a job, and the folder of its result."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest
from helpers.corpora import make_reviews, write_json_lines

from tenor.errors import Stopped, UsageError
from tenor.preparation.job.folders import JobFolders
from tenor.preparation.job.prepare import prepare
from tenor.preparation.job.work_folder import KEY
from tenor.preparation.settings import PrepareSettings
from tenor.store.manifest import Manifest
from tenor.store.verify import verify_data

ONE = PrepareSettings(workers=1)
KEYS = ("1" * 64, "2" * 64)


def _killed(*_: object, **__: object) -> None:
    raise Stopped(9)


def _key_last(folder: Path) -> Iterator[Path]:
    """The files of a folder in the worst possible order: the key is last."""
    return iter(sorted(folder.glob("*"), key=lambda path: path.name == KEY))


def test_outputs_of_a_folder_that_was_being_removed_are_not_trusted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    first, second = (JobFolders(tmp_path / "out", key) for key in KEYS)
    for remove in (first.discard, second.working().__enter__):
        with first.working() as work:
            work.slice(0).mkdir(parents=True)
        with first.working() as work:
            assert work.slice(0).exists()
        with monkeypatch.context() as patch:
            patch.setattr(shutil, "rmtree", _killed)
            patch.setattr(Path, "iterdir", _key_last)
            with pytest.raises(Stopped):
                remove()
        with first.working() as work:
            assert not work.slice(0).exists()


def test_what_a_stopped_attempt_left_half_written_is_not_published(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = write_json_lines(tmp_path / "r.jsonl", make_reviews(50))

    def stop(folders: JobFolders, manifest: Manifest, report: object) -> None:
        [final] = tmp_path.rglob("final")
        (final / ".vocab.json.77.tmp").write_text("half")
        raise Stopped(9)

    with monkeypatch.context() as patch, pytest.raises(Stopped):
        patch.setattr(JobFolders, "publish", stop)
        prepare([path], tmp_path / "out", ONE)
    prepare([path], tmp_path / "out", ONE)
    expected = ["job.json", "manifest.json", "rejects.jsonl", "test", "train", "valid", "vocab.json"]
    assert sorted(file.name for file in (tmp_path / "out").iterdir()) == expected


def test_a_working_folder_beside_the_result_goes_away_unless_it_is_anothers(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = write_json_lines(tmp_path / "r.jsonl", make_reviews(50))
    with monkeypatch.context() as patch, pytest.raises(Stopped):
        patch.setattr(JobFolders, "discard", _killed)
        prepare([path], tmp_path / "out", ONE)
    assert (tmp_path / ".out.preparing").exists() and (tmp_path / "out").exists()
    first = prepare([path], tmp_path / "out", ONE)
    assert sorted(file.name for file in tmp_path.iterdir()) == ["out", "r.jsonl"]
    with JobFolders(tmp_path / "out", KEYS[0]).working():
        pass
    assert prepare([path], tmp_path / "out", ONE) == first
    assert (tmp_path / ".out.preparing").exists()


def test_the_result_may_go_through_a_link_to_an_empty_folder(tmp_path: Path) -> None:
    path = write_json_lines(tmp_path / "r.jsonl", make_reviews(50))
    (tmp_path / "disk" / "data").mkdir(parents=True)
    (tmp_path / "out").symlink_to("disk/data")
    first = prepare([path], tmp_path / "out", ONE)
    assert (tmp_path / "out").is_symlink() and verify_data(tmp_path / "disk" / "data") == verify_data(tmp_path / "out")
    assert prepare([path], tmp_path / "out", ONE) == first
    assert [file.name for file in (tmp_path / "disk").iterdir()] == ["data"]


def test_a_mount_point_is_refused_before_any_work(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = write_json_lines(tmp_path / "r.jsonl", make_reviews(50))
    (tmp_path / "out").mkdir()
    monkeypatch.setattr(Path, "is_mount", lambda path: path == tmp_path / "out")
    with pytest.raises(UsageError, match="out: is a mount point; name a folder inside it"):
        prepare([path], tmp_path / "out", ONE)
    assert not (tmp_path / ".out.preparing").exists()
    assert prepare([path], tmp_path / "out" / "data", ONE).rows_kept == 50


def test_a_late_task_of_another_job_writes_elsewhere(tmp_path: Path) -> None:
    first, second = (JobFolders(tmp_path / "out", key) for key in KEYS)
    with first.working() as old:
        pass
    with second.working() as new:
        old.slice(0).mkdir(parents=True)  # as a task does that a cluster has not stopped
        assert not new.slice(0).exists()
        second.discard()
    assert not list(tmp_path.iterdir())


def test_one_job_at_a_time_works_for_a_folder(tmp_path: Path) -> None:
    first, second = (JobFolders(tmp_path / "out", key) for key in KEYS)
    with first.working():
        for folders in (first, second):
            with pytest.raises(UsageError, match="out: is being prepared by another process"), folders.working():
                pass
        second.tidy()
        assert first.outputs.exists()
    with second.working():
        pass
