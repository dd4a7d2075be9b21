"""The title column belongs to the run: prepare stores it, predict and evaluate read with it."""

from __future__ import annotations

import csv
import json
from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from helpers.command import run_tenor
from helpers.corpora import Review, make_reviews, write_json_lines
from helpers.training import SMALL

import tenor
from tenor.corpus.columns import Wanted
from tenor.corpus.texts import read_texts
from tenor.errors import CorpusError
from tenor.progress import Silent
from tenor.store.manifest import Manifest
from tenor.training.tasks.reviews import Reviews

ROWS = [{"title": "superb", "text": "it was awful", "rating": 5}, {"title": "", "text": "tedious film", "rating": 1}]
JOINED = ["superb it was awful", "tedious film"]
TITLED = {"title_column": "title", "joined_by": " "}


class Heard(Silent):
    def __init__(self) -> None:
        self.lines: list[str] = []

    def warn(self, line: str) -> None:
        self.lines.append(line)


def write(path: Path) -> Path:
    if path.suffix == ".csv":
        with path.open("w", encoding="utf-8", newline="") as file:
            table = csv.DictWriter(file, ["title", "text", "rating"])
            table.writeheader()
            table.writerows(ROWS)
    elif path.suffix == ".parquet":
        pq.write_table(pa.Table.from_pylist(ROWS), path)
    else:
        path.write_text("".join(json.dumps(row) + "\n" for row in ROWS), "utf-8")
    return path


@pytest.mark.parametrize("name", ["r.csv", "r.jsonl", "r.parquet"])
def test_titles_stand_before_texts(tmp_path: Path, name: str) -> None:
    path = str(write(tmp_path / name))
    found = [text.strip() for batch in read_texts(path, Wanted(title="title")) for text in batch.to_pylist()]
    assert found == JOINED
    with pytest.raises(CorpusError, match="no column 'headline'; title_column can be title, text, rating"):
        list(read_texts(path, Wanted(title="headline")))


def test_the_manifest_and_the_run_know_the_title_column(tmp_path: Path, data: Path) -> None:
    raw = write_json_lines(tmp_path / "r.jsonl", make_reviews(60, seed=1))
    lines = [json.dumps({**json.loads(line), "title": "superb"}) for line in raw.read_text("utf-8").splitlines()]
    raw.write_text("\n".join(lines), "utf-8")
    tenor.prepare([raw], tmp_path / "data", tenor.PrepareSettings(workers=1, title_column="title"))
    assert json.loads((tmp_path / "data" / "manifest.json").read_text("utf-8"))["text"] == TITLED
    task = Reviews(tmp_path / "data", SMALL)
    try:
        assert Manifest.load(tmp_path / "data").text == task.describe()["text"] == TITLED
    finally:
        task.close()
    plain = Reviews(data, SMALL)
    try:  # data without titles is what it was before titles were stored
        assert "text" not in json.loads((data / "manifest.json").read_text("utf-8"))
        assert Manifest.load(data).text == {} and "text" not in plain.describe()
    finally:
        plain.close()


@pytest.mark.parametrize("name", ["r.csv", "r.jsonl", "r.parquet"])
def test_predict_and_evaluate_read_the_run_s_titles(make_run: Callable[..., Path], tmp_path: Path, name: str) -> None:
    run, raw = make_run(text=TITLED), write(tmp_path / name)
    expected = [said.as_dict() for said in tenor.load(run).predict(JOINED)]
    tenor.predict(run, raw, tmp_path / "out.jsonl")
    assert [json.loads(line) for line in (tmp_path / "out.jsonl").read_text("utf-8").splitlines()] == expected
    reviews = [Review(text, 5 if text == JOINED[0] else 1) for text in JOINED]
    joined = write_json_lines(tmp_path / "joined.jsonl", reviews)
    assert tenor.evaluate(run, raw).log_loss == _log_loss_without_title(run, joined)
    bare = tenor.PredictSettings(title_column="")
    tenor.predict(run, raw, tmp_path / "bare.jsonl", bare)
    assert (tmp_path / "bare.jsonl").read_text("utf-8") != (tmp_path / "out.jsonl").read_text("utf-8")


def _log_loss_without_title(run: Path, raw: Path) -> float:
    return tenor.evaluate(run, raw, tenor.EvaluateSettings(title_column="")).log_loss


def test_a_missing_title_column_is_a_warning_and_a_named_one_an_error(
    make_run: Callable[..., Path], tmp_path: Path
) -> None:
    run, raw = make_run(text=TITLED), write_json_lines(tmp_path / "r.jsonl", make_reviews(20))
    heard = Heard()
    assert tenor.evaluate(run, raw, progress=heard).rows == 20
    tenor.predict(run, raw, tmp_path / "out.jsonl", progress=heard)
    assert len(heard.lines) == 2 and all("has no column 'title'" in line for line in heard.lines)
    with pytest.raises(CorpusError, match="no column 'headline'"):
        tenor.evaluate(run, raw, tenor.EvaluateSettings(title_column="headline"))
    with pytest.raises(CorpusError, match="no column 'headline'"):
        tenor.predict(run, raw, tmp_path / "no.jsonl", tenor.PredictSettings(title_column="headline"))
    said = run_tenor("predict", run, "-", "--json", input="superb\n").ok()
    assert "standard input: has no column 'title'" in said.stderr and len(said.stdout.splitlines()) == 1
