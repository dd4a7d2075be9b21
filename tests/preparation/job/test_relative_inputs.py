"""Relative input names are found by workers whose working directory differs from that of the job."""

from __future__ import annotations

import contextlib
from collections.abc import Sequence
from pathlib import Path

import pytest
from helpers.corpora import make_reviews, write_csv, write_json_lines
from preparation.job.test_prepare import hashes

from tenor.corpus.pieces import whole
from tenor.corpus.texts import read_piece_texts, text_source
from tenor.engines.protocol import Done, call
from tenor.engines.records import Json
from tenor.errors import CorpusError
from tenor.preparation.job.prepare import prepare, prepare_on
from tenor.preparation.settings import PrepareSettings


class Elsewhere:
    """An engine whose workers run in another working directory than the job, as those of a cluster do."""

    name, workers = "elsewhere", 1

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def run(self, stage: str, tasks: Sequence[Json], done: Done) -> list[Json]:
        with contextlib.chdir(self.folder):
            return [call(stage, task) for task in tasks]

    def close(self) -> None: ...


def test_relative_inputs_are_found_by_workers_in_another_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "elsewhere").mkdir()
    monkeypatch.chdir(tmp_path)
    lines = write_json_lines(Path("a.jsonl"), make_reviews(300))
    with lines.open("a") as file:
        file.write("no JSON\n")
    files = ["a.jsonl", str(write_csv(Path("b.csv.gz"), make_reviews(100, seed=1)))]
    prepare(files, "expected", PrepareSettings(workers=1))
    prepare_on(Elsewhere(tmp_path / "elsewhere"), files, "out")
    assert hashes(Path("out")) == hashes(Path("expected"))
    assert '"file": "a.jsonl", "line": 301' in Path("out/rejects.jsonl").read_text("utf-8")  # named as it was given


def test_relative_texts_are_found_from_another_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "elsewhere").mkdir()
    monkeypatch.chdir(tmp_path)
    Path("texts.txt").write_text("very good\nnot good\n", "utf-8")
    piece = whole(text_source("texts.txt"))
    monkeypatch.chdir(tmp_path / "elsewhere")
    assert [text for texts in read_piece_texts(piece) for text in texts.to_pylist()] == ["very good", "not good"]
    (tmp_path / "texts.txt").unlink()
    with pytest.raises(CorpusError, match=r"^texts\.txt: cannot be read"):
        list(read_piece_texts(piece))
