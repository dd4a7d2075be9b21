"""Predictions on standard output: the same rows as with --out, whatever the options; and labels that are left out."""

from __future__ import annotations

import csv
import io
import json
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.parquet as pq
import pytest
from helpers.command import run_tenor
from helpers.corpora import make_reviews, write_csv, write_json_lines

import tenor
from tenor.errors import CorpusError, UsageError
from tenor.prediction.predict import predict_rows
from tenor.prediction.stream import stream_rows
from tenor.progress import SILENT

REVIEWS = make_reviews(120, seed=9)
SETTINGS: list[dict[str, Any]] = [
    {"keep_columns": True, "line_numbers": True},
    {"id_column": "rating", "probabilities": True, "workers": 1},
    {"line_numbers": True, "explain": True, "abstain_below": 0.9},
    {"workers": 2, "keep_columns": True, "line_numbers": True, "abstain_below": 0.9},
]


def read(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text("utf-8").splitlines()]


def piped(monkeypatch: pytest.MonkeyPatch, content: bytes) -> None:
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(content)))


@pytest.mark.parametrize("options", SETTINGS)
def test_the_rows_are_those_of_a_file(
    run: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, options: dict[str, Any]
) -> None:
    monkeypatch.setattr("tenor.prediction.pieces.SMALLEST", 4096)
    settings = tenor.PredictSettings(threads=1, **options)
    files = [str(write_csv(tmp_path / "a.csv", REVIEWS)), str(write_json_lines(tmp_path / "b.jsonl", REVIEWS[:9]))]
    predict_rows(run, files, tmp_path / "out.jsonl", tenor.PredictSettings(threads=1, **{**options, "workers": 1}))
    assert list(stream_rows(run, files, settings, SILENT)) == read(tmp_path / "out.jsonl")
    if settings.keep_columns or settings.id_column:  # standard input has columns, too
        piped(monkeypatch, Path(files[1]).read_bytes())
        rows = read(tmp_path / "out.jsonl")[120:]
        expected = [{**row, "file": "-"} if settings.line_numbers else row for row in rows]
        assert list(stream_rows(run, ["-"], settings, SILENT)) == expected


def test_standard_input_stays_plain_text_on_several_workers(run: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    content = b'{"text": "superb"}\nrating,text\n\n'
    found = []
    for workers in (1, 2):
        piped(monkeypatch, content)
        settings = tenor.PredictSettings(workers=workers, line_numbers=True)
        found.append(list(stream_rows(run, ["-"], settings, SILENT)))
    assert found[0] == found[1] and [row["line"] for row in found[0]] == [1, 2, 3]


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"cluster": "tcp://127.0.0.1:1"}, "cluster needs .*out, because the workers of a cluster write beside"),
        ({"output_format": "csv"}, "standard output has one line per review"),
        ({"max_rejects": 0.5}, "rejected rows are listed beside the output"),
        ({"tls_ca": "ca.pem"}, "belong to .*engine dask"),
    ],
)
def test_what_needs_a_file_is_refused(
    run: Path, monkeypatch: pytest.MonkeyPatch, options: dict[str, Any], said: str
) -> None:
    piped(monkeypatch, b"a\n")
    with pytest.raises(UsageError, match=said):
        list(stream_rows(run, ["-"], tenor.PredictSettings(**options), SILENT))


def test_a_row_that_cannot_be_read_and_a_file_without_columns(run: Path, tmp_path: Path) -> None:
    raw, plain = tmp_path / "new.jsonl", tmp_path / "new.txt"
    raw.write_text('{"text": "a"}\n{"text": 5}\n')
    plain.write_text("a\n")
    with pytest.raises(CorpusError, match=r"new\.jsonl: line 2: text is not a string"):
        list(stream_rows(run, [str(raw)], tenor.PredictSettings(), SILENT))
    with pytest.raises(UsageError, match="keep_columns, but the file has no columns"):
        list(stream_rows(run, [str(plain)], tenor.PredictSettings(keep_columns=True), SILENT))


def test_a_model_that_is_not_sure_gives_no_label(run: Path, tmp_path: Path) -> None:
    raw = write_csv(tmp_path / "new.csv", REVIEWS)
    plain = tenor.load(run).predict([review.text for review in REVIEWS])
    limit = float(np.median([row.probability for row in plain]))
    settings = tenor.PredictSettings(abstain_below=limit, workers=1)
    for name in ("out.jsonl", "out.csv", "out.parquet"):
        predict_rows(run, raw, tmp_path / name, settings)
    rows = read(tmp_path / "out.jsonl")
    is_unsure = [bool(np.float32(row.probability) < limit) for row in plain]
    assert any(is_unsure) and not all(is_unsure)
    assert [row["abstained"] for row in rows] == is_unsure
    labels = [None if unsure else row.label for unsure, row in zip(is_unsure, plain, strict=True)]
    assert [row["label"] for row in rows] == labels
    assert pq.read_table(tmp_path / "out.parquet").select(["label", "abstained"]).to_pylist() == [
        {"label": label, "abstained": unsure} for label, unsure in zip(labels, is_unsure, strict=True)
    ]
    with (tmp_path / "out.csv").open(newline="") as file:
        assert [row["label"] or None for row in csv.DictReader(file)] == labels
    assert tenor.evaluate(run, raw, abstain_below=limit).coverage == 1 - sum(is_unsure) / len(REVIEWS)


def test_the_command_says_how_many_reviews_got_a_label(run: Path, tmp_path: Path) -> None:
    raw = write_csv(tmp_path / "new.csv", REVIEWS[:20])
    made = run_tenor("predict", run, raw, "--abstain-below", "1", "--out", tmp_path / "out.jsonl", "--json").ok().json
    assert (made["abstain_below"], made["abstained"], made["coverage"]) == (1.0, 20, 0.0)
    found = run_tenor("predict", run, raw, "--abstain-below", "1", "--line-numbers", "--id-column", "rating").ok()
    assert found.stderr.endswith("0.0% of the reviews answered, 20 of 20 without a label\n")
    fields = found.stdout.splitlines()[0].split("\t")
    assert fields[0] == "" and fields[3:] == [json.dumps(str(raw)), "2", json.dumps({"rating": str(REVIEWS[0].rating)})]
