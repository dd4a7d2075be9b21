"""Which files the caller's names stand for."""

from __future__ import annotations

from pathlib import Path

import pytest

from tenor.corpus.inputs import expand


def make(folder: Path, *names: str) -> None:
    for name in names:
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).touch()


@pytest.mark.parametrize("scheme", ["", "file://"])
def test_neither_hidden_folders_nor_prepared_data_are_searched(tmp_path: Path, scheme: str) -> None:
    make(tmp_path, "in/1.jsonl", "in/sub/2.jsonl", "in/.data.preparing/pieces/0/rejects.jsonl", "in/_log/0.json")
    make(tmp_path, *(f"in/data/{name}" for name in ("manifest.json", "vocab.json", "job.json", "rejects.jsonl")))
    make(tmp_path, "in/mine/manifest.json")  # a name that others use too
    found = [file.removeprefix(scheme) for file in expand([f"{scheme}{tmp_path}/in"])]
    assert [str(Path(file).relative_to(tmp_path)) for file in found] == [
        "in/1.jsonl",
        "in/mine/manifest.json",
        "in/sub/2.jsonl",
    ]


def test_a_hidden_folder_that_is_named_is_searched(tmp_path: Path) -> None:
    make(tmp_path, ".in/1.jsonl")
    assert expand([tmp_path / ".in"]) == [str(tmp_path / ".in" / "1.jsonl")]
