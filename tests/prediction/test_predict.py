"""Whole files predicted by several workers: pieces of every format, and a warning if workers have nothing to do."""

from __future__ import annotations

import gzip
import os
from collections.abc import Callable
from pathlib import Path

import pytest
from helpers.corpora import make_reviews, write_csv, write_json_lines

import tenor
from tenor import compiled
from tenor.cli.commands import evaluate as evaluate_command
from tenor.cli.commands import predict as predict_command
from tenor.cli.console import Console
from tenor.corpus.texts import read_piece_texts, text_source
from tenor.engines.choose import make_engine
from tenor.engines.protocol import Engine
from tenor.engines.settings import EngineSettings
from tenor.environment import num_threads
from tenor.errors import CorpusError, UsageError
from tenor.prediction.pieces import cut_into_pieces
from tenor.prediction.worker_model import ModelRef, model_of
from tenor.preparation.job.startup import COMPILING
from tenor.progress import Silent

TEXTS = [review.text for review in make_reviews(300, seed=9)]


class Heard(Silent):
    def __init__(self) -> None:
        self.lines: list[str] = []
        self.done = 0.0

    def start(self, stage: str, total: float | None, unit: str) -> None:
        self.total, self.unit = total, unit

    def advance(self, amount: float, note: str = "") -> None:
        self.done += amount

    def warn(self, line: str) -> None:
        self.lines.append(line)


def plain(path: Path) -> Path:
    path.write_text("\ufeff" + "\n".join(TEXTS), "utf-8")
    return path


def test_plain_text_is_cut_into_pieces(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for smallest in (1000, 4096, 10_000):
        monkeypatch.setattr("tenor.prediction.pieces.SMALLEST", smallest)
        pieces = cut_into_pieces([text_source(str(plain(tmp_path / "new.txt")))], 2, Silent())
        assert len(pieces) > 2
        assert [text for piece in pieces for batch in read_piece_texts(piece) for text in batch.to_pylist()] == TEXTS


def test_two_workers_predict_plain_text_as_one_does(run: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tenor.prediction.pieces.SMALLEST", 16_384)
    raw, heard, workers = plain(tmp_path / "new.txt"), Heard(), []
    monkeypatch.setattr("tenor.prediction.predict.make_engine", _noting(workers))
    for count in (1, 2):
        settings = tenor.PredictSettings(workers=count, threads=1)
        assert tenor.predict(run, raw, tmp_path / f"{count}.jsonl", settings, heard) == 300
    one, two = ((tmp_path / f"{count}.jsonl").read_bytes() for count in (1, 2))
    assert one == two and workers == [1, 2]
    assert heard.lines == [] and heard.done == 2 * raw.stat().st_size and heard.unit == "B"


def _noting(workers: list[int]) -> Callable[[EngineSettings], Engine]:
    def make(settings: EngineSettings) -> Engine:
        engine = make_engine(settings)
        workers.append(engine.workers)
        return engine

    return make


@pytest.mark.parametrize(
    ("name", "why"),
    [
        ("new.txt.gz", "a file packed with gz cannot be cut; it is read as one piece"),
        ("new.txt", "a piece is at least 1 MiB; it is read as one piece"),
    ],
)
def test_idle_workers_give_a_warning(run: Path, tmp_path: Path, name: str, why: str) -> None:
    raw = plain(tmp_path / "plain.txt")
    (tmp_path / name).write_bytes(gzip.compress(raw.read_bytes()) if name.endswith("gz") else raw.read_bytes())
    heard = Heard()
    assert tenor.predict(run, tmp_path / name, tmp_path / "out", tenor.PredictSettings(workers=2), heard) == 300
    assert heard.lines == [f"{tmp_path / name}: {why}, so 1 of 2 workers can work"]
    tenor.predict(run, tmp_path / name, tmp_path / "out", tenor.PredictSettings(), heard)
    assert len(heard.lines) == 1


@pytest.mark.parametrize("name", ["new.txt", "new.jsonl", "new.csv"])
def test_a_bad_line_is_named_by_its_number_in_the_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    monkeypatch.setattr("tenor.prediction.pieces.SMALLEST", 4096)
    path, reviews = tmp_path / name, make_reviews(300, seed=9)
    writers = {"new.jsonl": write_json_lines, "new.csv": write_csv}
    lines = writers[name](path, reviews).read_bytes().split(b"\n") if name in writers else [*map(str.encode, TEXTS)]
    lines[199] = b'b\xffd,1,2,3,"x' if name == "new.csv" else b"b\xffd"
    path.write_bytes(b"\n".join(lines))
    with pytest.raises(CorpusError, match=r"line 200: "):
        for piece in cut_into_pieces([text_source(str(path))], 2, Silent()):
            list(read_piece_texts(piece))


def test_a_run_that_was_trained_anew_is_loaded_anew(make_run: Callable[..., Path]) -> None:
    run = make_run()
    first = model_of(ModelRef.of(run))
    assert model_of(ModelRef.of(run)) is first
    weights = run / "model.safetensors"
    os.utime(weights, ns=(0, weights.stat().st_mtime_ns + 1))
    assert model_of(ModelRef.of(run)) is not first


def test_threads(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tenor.environment.usable_cores", lambda: 8)
    assert [num_threads(0, workers) for workers in (1, 4, 16)] == [8, 2, 1]
    assert num_threads(3, 4) == 3
    for settings in (tenor.PredictSettings, tenor.EvaluateSettings):
        with pytest.raises(UsageError, match="threads cannot be -1"):
            settings(threads=-1)


def test_every_command_computes_with_the_threads_that_it_is_given(
    run: Path, data: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    used: list[int] = []
    threads = property(lambda model: 1, lambda model, number: used.append(number))
    monkeypatch.setattr(tenor.SentimentModel, "threads", threads, raising=False)  # otherwise set by its constructor
    texts, settings = plain(tmp_path / "new.txt"), tenor.PredictSettings(threads=3)
    for work in (
        lambda: tenor.evaluate(run, data, threads=3),
        lambda: tenor.predict(run, texts, tmp_path / "out.jsonl", settings),
        lambda: predict_command._print(Console(json=True), run, [str(texts)], settings),
    ):
        used.clear()
        work()
        assert used[-1] == 3


def test_commands_say_that_they_compile(
    run: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(compiled, "is_kept", lambda function: False)
    raw = write_csv(tmp_path / "new.csv", make_reviews(300, seed=9))
    predict_command._print(Console(json=True), run, [str(raw)], tenor.PredictSettings())
    assert capsys.readouterr().err.count(COMPILING) == 1
    evaluate_command._measure(Console(json=True), run, str(raw), tenor.EvaluateSettings())
    assert capsys.readouterr().err.count(COMPILING) == 1
    tenor.prepare([raw], tmp_path / "data", workers=1, progress=(heard := Heard()))
    assert heard.lines == [COMPILING]
