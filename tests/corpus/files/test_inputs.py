"""Which files are read for the names that the caller gives."""

from __future__ import annotations

import errno
import os
from pathlib import Path

import pytest

from tenor.corpus.files.inputs import expand as expand_inputs
from tenor.corpus.formats.registry import has_known_suffix
from tenor.errors import CorpusError

PREPARED = ("data/manifest.json", "data/vocab.json", "data/job.json", "data/rejects.jsonl")


def expand(inputs: list[str | Path]) -> list[str]:
    return expand_inputs(inputs, has_known_suffix)


def make(folder: Path, *names: str) -> None:
    for name in names:
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).touch()


@pytest.mark.parametrize("scheme", ["", "file://"])
def test_neither_hidden_folders_nor_prepared_data_are_searched(tmp_path: Path, scheme: str) -> None:
    make(tmp_path, "in/1.jsonl", "in/sub/2.jsonl", "in/.data.preparing/pieces/0/rejects.jsonl", "in/_log/0.json")
    make(tmp_path, *(f"in/{name}" for name in PREPARED))
    make(tmp_path, "in/mine/manifest.json")  # other programs use this name too
    found = expand([f"{scheme}{tmp_path}/in"])
    assert found == [f"{scheme}{tmp_path}/in/{name}" for name in ("1.jsonl", "mine/manifest.json", "sub/2.jsonl")]


def test_a_hidden_folder_that_is_named_is_searched(tmp_path: Path) -> None:
    make(tmp_path, ".in/1.jsonl")
    assert expand([tmp_path / ".in"]) == [str(tmp_path / ".in" / "1.jsonl")]


@pytest.mark.parametrize("scheme", ["", "file://"])
def test_a_folder_that_a_glob_matches_is_searched(tmp_path: Path, scheme: str) -> None:
    make(tmp_path, "in/1.jsonl", "in/sub/2.jsonl", "in/sub/notes.md", "in/empty/notes.md")
    found = expand([f"{scheme}{tmp_path}/in/*"])
    assert found == [f"{scheme}{tmp_path}/in/{name}" for name in ("1.jsonl", "sub/2.jsonl")]


def test_a_glob_finds_prepared_data_only_if_it_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    make(tmp_path, "1.jsonl", *PREPARED)
    monkeypatch.chdir(tmp_path)
    assert expand(["**/*.jsonl"]) == expand(["*"]) == ["1.jsonl"]
    assert expand(["data/*.jsonl"]) == ["data/rejects.jsonl"]


def test_a_file_with_several_names_is_listed_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    make(tmp_path, "in/1.jsonl", "in/2.jsonl")
    (tmp_path / "in" / "0.jsonl").symlink_to("2.jsonl")
    monkeypatch.chdir(tmp_path)
    assert expand(["in/1.jsonl", "./in/1.jsonl", "in/../in/1.jsonl", tmp_path / "in"]) == [
        "in/1.jsonl",
        str(tmp_path / "in" / "0.jsonl"),
    ]


@pytest.mark.parametrize("scheme", ["", "file://"])
def test_the_last_suffix_without_compression_decides(tmp_path: Path, scheme: str) -> None:
    taken = ["a.jsonl", "b.JSON.GZ", "c.csv.zst", "d.ft.txt", "e.ft.txt.bz2", "f.1.pq", "g.ft"]
    make(tmp_path, *taken, "r.jsonl.bak", "r.csv.md5", "r.jsonl.gz.part", "r.parquet.crc", "notes.txt", "gz")
    assert [Path(file).name for file in expand([f"{scheme}{tmp_path}"])] == taken


@pytest.mark.parametrize("pattern", ["in", "in/*"])
def test_a_folder_that_cannot_be_searched_is_an_error(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, pattern: str
) -> None:
    make(tmp_path, "in/sub/1.jsonl", "in/sub/locked/2.jsonl", "in/sub/.locked/3.jsonl")
    scandir = os.scandir

    def refusing(
        path: str | Path = ".",
    ) -> object:  # root may search every folder, so permissions cannot cause the error
        if Path(path).name.endswith("locked"):
            raise PermissionError(errno.EACCES, "Permission denied", os.fspath(path))
        return scandir(path)

    monkeypatch.setattr(os, "scandir", refusing)
    with pytest.raises(CorpusError, match=r"in/sub/locked: cannot be searched: Permission denied; make it readable"):
        expand([str(tmp_path / pattern)])
    (tmp_path / "in" / "sub" / "locked").rename(tmp_path / "elsewhere")
    assert expand([str(tmp_path / pattern)]) == [str(tmp_path / "in" / "sub" / "1.jsonl")]
