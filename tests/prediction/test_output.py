"""Predictions at scale: several files, all formats in and out, columns of the input, rejected rows, resuming."""

from __future__ import annotations

import csv
import json
import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from helpers.corpora import make_reviews, write_csv, write_fasttext, write_json_lines

import tenor
from tenor.errors import CorpusError, UsageError
from tenor.prediction import predict as module
from tenor.prediction.predict import predict_rows

REVIEWS = make_reviews(120, seed=9)


def write_parquet(path: Path) -> Path:
    pq.write_table(pa.table({"text": [r.text for r in REVIEWS], "rating": [r.rating for r in REVIEWS]}), path)
    return path


WRITERS = {
    "new.jsonl": lambda path: write_json_lines(path, REVIEWS),
    "new.csv": lambda path: write_csv(path, REVIEWS),
    "new.parquet": write_parquet,
}


def read(path: Path) -> list[dict[str, Any]]:
    if path.suffix == ".csv":
        with path.open(newline="", encoding="utf-8") as file:
            return list(csv.DictReader(file))
    if path.suffix == ".parquet":
        return list(pq.read_table(path).to_pylist())
    return [json.loads(line) for line in path.read_text("utf-8").splitlines()]


@pytest.mark.parametrize("name", WRITERS)
@pytest.mark.parametrize("out", ["out.jsonl", "out.csv", "out.parquet"])
def test_predictions_stand_beside_the_columns_of_the_input(
    run: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str, out: str
) -> None:
    monkeypatch.setattr("tenor.prediction.pieces.SMALLEST", 4096)
    raw = WRITERS[name](tmp_path / name)
    settings = tenor.PredictSettings(workers=1, keep_columns=True, line_numbers=True, probabilities=True)
    found = predict_rows(run, raw, tmp_path / out, settings)
    assert (found.rows_read, found.rows, found.rejected) == (120, 120, 0)
    rows, expected = read(tmp_path / out), tenor.load(run).predict([review.text for review in REVIEWS])
    assert [row["text"] for row in rows] == [review.text for review in REVIEWS]
    assert [int(row["rating"]) for row in rows] == [review.rating for review in REVIEWS]
    assert [row["label"] for row in rows] == [prediction.label for prediction in expected]
    chances = [p.probability for p in expected]
    assert [float(row["probability"]) for row in rows] == pytest.approx(chances, abs=1e-6)
    first = 1 + (name == "new.csv")  # the header is a line
    assert [int(row["line"]) for row in rows] == list(range(first, first + 120))
    assert {row["file"] for row in rows} == {str(raw)}
    of_all = rows[0].get("probabilities") or {c: float(rows[0][f"probability_{c}"]) for c in ("negative", "positive")}
    assert sum(of_all.values()) == pytest.approx(1.0)
    assert not list(tmp_path.glob(".*"))


def test_several_files_and_folders_keep_their_order(run: Path, tmp_path: Path) -> None:
    (tmp_path / "in").mkdir()
    write_json_lines(tmp_path / "in" / "a.jsonl", REVIEWS[:30], label="label")
    write_csv(tmp_path / "in" / "b.csv", REVIEWS[30:60])
    third = write_fasttext(tmp_path / "c.ft.txt", REVIEWS[60:])
    rows = tenor.predict(run, [tmp_path / "in", third], tmp_path / "out.jsonl")
    expected = [prediction.as_dict() for prediction in tenor.load(run).predict([review.text for review in REVIEWS])]
    assert rows == 120 and read(tmp_path / "out.jsonl") == expected
    settings = tenor.PredictSettings(keep_columns=True)
    tenor.predict(run, tmp_path / "in", tmp_path / "kept.csv", settings)
    kept = read(tmp_path / "kept.csv")  # `label` is ours; rows of the second file have no `original_label`
    assert [row["original_label"] for row in kept] == [str(r.rating) for r in REVIEWS[:30]] + [""] * 30
    assert {row["label"] for row in kept} == {"negative", "positive"}
    with pytest.raises(UsageError, match="keep_columns, but the file has no columns"):
        tenor.predict(run, third, tmp_path / "out.jsonl", settings)


def test_one_column_and_explanations(run: Path, tmp_path: Path) -> None:
    raw = write_csv(tmp_path / "new.csv", [*REVIEWS[:5]])
    settings = tenor.PredictSettings(id_column="rating", explain=True)
    tenor.predict(run, raw, tmp_path / "out.jsonl", settings)
    rows, model = read(tmp_path / "out.jsonl"), tenor.load(run)
    assert [set(row) for row in rows] == [{"label", "probability", "known_words", "explanation", "rating"}] * 5
    for row, review in zip(rows, REVIEWS, strict=False):
        pieces = model.explain(review.text, row["label"])
        assert [piece[:3] for piece in row["explanation"]] == [list(piece[:3]) for piece in pieces]
    with pytest.raises(CorpusError, match="no column 'asin'; id_column can be text, rating"):
        tenor.predict(run, raw, tmp_path / "out.jsonl", tenor.PredictSettings(id_column="asin"))
    with pytest.raises(UsageError, match="omit one of them"):
        tenor.PredictSettings(id_column="a", keep_columns=True)


def test_every_row_is_accounted_for(run: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tenor.prediction.pieces.SMALLEST", 4096)
    lines = write_json_lines(tmp_path / "new.jsonl", REVIEWS).read_bytes().splitlines()
    lines[70] = b'{"text": 5}'
    (tmp_path / "new.jsonl").write_bytes(b"\n".join(lines) + b"\n")
    with pytest.raises(CorpusError, match=r"new\.jsonl: line 71: text is not a string"):
        tenor.predict(run, tmp_path / "new.jsonl", tmp_path / "out.jsonl", tenor.PredictSettings(workers=1))
    settings = tenor.PredictSettings(workers=1, max_rejects=0.05, line_numbers=True)
    found = predict_rows(run, tmp_path / "new.jsonl", tmp_path / "out.jsonl", settings)
    assert (found.rows_read, found.rows, found.rejected) == (120, 119, 1)
    assert [row["line"] for row in read(tmp_path / "out.jsonl")] == [n for n in range(1, 121) if n != 71]
    rejects = read(tmp_path / "out.jsonl.rejects.jsonl")
    assert rejects == [{"file": str(tmp_path / "new.jsonl"), "line": 71, "reason": "text is not a string"}]
    with pytest.raises(CorpusError, match=r"1 of 120 rows cannot be read; the first one: line 71"):
        tenor.predict(run, tmp_path / "new.jsonl", tmp_path / "o", tenor.PredictSettings(workers=1, max_rejects=0.001))


def test_a_stopped_job_continues(run: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tenor.prediction.pieces.SMALLEST", 4096)
    raw, done = write_json_lines(tmp_path / "new.jsonl", REVIEWS), list[int]()
    whole = tmp_path / "whole.jsonl"
    settings = tenor.PredictSettings(workers=1)
    tenor.predict(run, raw, whole, settings)
    write = module._write_piece

    def stop(task: Any, writer: Any) -> Any:
        if len(done) == 2:
            raise KeyboardInterrupt
        done.append(task.piece.start)
        return write(task, writer)

    monkeypatch.setattr(module, "_write_piece", stop)
    with pytest.raises(KeyboardInterrupt):
        tenor.predict(run, raw, tmp_path / "out.jsonl", settings)
    assert not (tmp_path / "out.jsonl").exists() and len(list(tmp_path.glob(".out.jsonl.predicting/*.json"))) == 4
    again = list[int]()
    monkeypatch.setattr(module, "_write_piece", lambda task, w: (again.append(task.piece.start), write(task, w))[1])
    tenor.predict(run, raw, tmp_path / "out.jsonl", settings)
    assert not set(again) & set(done) and len(again) > 1
    assert (tmp_path / "out.jsonl").read_bytes() == whole.read_bytes()
    assert not list(tmp_path.glob(".*"))


KILLED = """
import os, signal, sys
import tenor
import tenor.prediction.pieces as pieces
import tenor.prediction.predict as module

pieces.SMALLEST, write, done = 1024, module._write_piece, []

def stop(task, writer):
    found = write(task, writer)
    done.append(task)
    if len(done) == 3:
        os.kill(os.getpid(), signal.SIGKILL)
    return found

module._write_piece = stop
tenor.predict(sys.argv[1], sys.argv[2], sys.argv[3], tenor.PredictSettings(workers=1))
"""


def test_a_killed_job_continues(run: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tenor.prediction.pieces.SMALLEST", 1024)
    raw, whole, out = (
        write_json_lines(tmp_path / "new.jsonl", REVIEWS),
        tmp_path / "whole.parquet",
        tmp_path / "out.parquet",
    )
    words = [sys.executable, "-c", KILLED, str(run), str(raw), str(out)]
    done = subprocess.run(words, env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}, check=False, timeout=200)
    assert done.returncode == -signal.SIGKILL and not out.exists()
    kept = sorted(tmp_path.glob(".out.parquet.predicting/*.json"))
    assert [path.name for path in kept] == ["000000.parquet.json", "000001.parquet.json"]
    before = [path.stat().st_mtime_ns for path in kept]
    settings = tenor.PredictSettings(workers=1)
    write, again = module._write_piece, list[int]()
    monkeypatch.setattr(module, "_write_piece", lambda task, w: (again.append(task.piece.start), write(task, w))[1])
    assert tenor.predict(run, raw, out, settings) == tenor.predict(run, raw, whole, settings) == 120
    assert len(before) == 2 and again.count(0) == 1  # the first piece was computed for `whole` only
    assert read(out) == read(whole) and not list(tmp_path.glob(".*"))


@pytest.mark.parametrize("name", ["out.csv", "out.parquet"])
def test_a_writer_holds_few_rows(run: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    """A packed file is one piece, however large it is."""
    raw = write_json_lines(tmp_path / "new.jsonl.gz", REVIEWS)
    settings = tenor.PredictSettings(workers=1, keep_columns=True, line_numbers=True)
    (tmp_path / "whole").mkdir()
    tenor.predict(run, raw, tmp_path / "whole" / name, settings)
    held = list[int]()
    flush = module.PieceWriter._flush

    def note(writer: Any) -> None:
        held.append(len(writer._rows))
        flush(writer)

    monkeypatch.setattr(module.PieceWriter, "_flush", note)
    monkeypatch.setattr("tenor.prediction.output.TABLE_ROWS", 50)
    tenor.predict(run, raw, tmp_path / name, settings)
    assert held == [50, 50, 20]
    assert read(tmp_path / name) == read(tmp_path / "whole" / name)


def test_two_jobs_cannot_write_one_output(run: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    raw, out, write = write_json_lines(tmp_path / "new.jsonl", REVIEWS), tmp_path / "out.jsonl", module._write_piece
    refused: list[str] = []

    def meanwhile(task: Any, writer: Any) -> Any:
        if not refused:
            refused.append("")
            with pytest.raises(UsageError, match=r"out\.jsonl: is in use by process \d+; .* choose another file") as e:
                tenor.predict(run, raw, out, tenor.PredictSettings(workers=1))
            refused[0] = str(e.value)
        return write(task, writer)

    monkeypatch.setattr(module, "_write_piece", meanwhile)
    assert tenor.predict(run, raw, out, tenor.PredictSettings(workers=1)) == 120
    assert str(os.getpid()) in refused[0] and len(read(out)) == 120
    assert not list(tmp_path.glob(".*"))
