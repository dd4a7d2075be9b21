"""Columns beside the text: every format gives the group and the date of each row, whatever the other columns hold."""

from __future__ import annotations

import csv
import json
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import tenor
from tenor.corpus.columns import Wanted
from tenor.corpus.pieces import Piece, read_piece
from tenor.corpus.sources import find_sources
from tenor.errors import CorpusError, UsageError
from tenor.insights.reading import Column, beside

ROWS = [
    {"text": "a fine film", "rating": 5, "asin": "A,1", "time": "2024-01-02"},
    {"text": "dull\nand long", "rating": 1, "asin": None, "time": "2024-01-03"},
    {"text": "no rating here", "rating": None, "asin": "B", "time": None},
    {"text": "so so", "rating": 3, "asin": 'C"2', "time": "2024-02-01"},
]


def write(path: Path) -> Path:
    if path.suffix == ".jsonl":
        path.write_text(
            "".join(json.dumps({k: v for k, v in r.items() if v is not None}) + "\n" for r in ROWS), "utf-8"
        )
    elif path.suffix == ".csv":
        with path.open("w", newline="") as file:
            table = csv.DictWriter(file, list(ROWS[0]))
            table.writeheader()
            table.writerows(ROWS)
    else:
        table = pa.Table.from_pylist(ROWS)
        dates = pa.array([row["time"] for row in ROWS]).cast(pa.timestamp("s"))
        pq.write_table(table.set_column(3, "time", dates), path)
    return path


@pytest.mark.parametrize("suffix", ["jsonl", "csv", "parquet"])
def test_each_row_gets_the_values_of_its_own_line(suffix: str, tmp_path: Path) -> None:
    wanted = Wanted(unlabelled=True)
    sources = find_sources([str(write(tmp_path / f"r.{suffix}"))], wanted)
    piece = Piece(sources[0], sources[0].body, None)
    columns = [Column(beside(sources, name, "--x", wanted)[0], piece) for name in ("asin", "time")]
    found = []
    for batch in read_piece(piece):
        lines = batch.rows.column(2).to_numpy()
        found += list(zip(batch.rows.column(0).to_pylist(), *(c.at(lines).to_pylist() for c in columns), strict=True))
    expected = [(row["text"], row["asin"] or "", (row["time"] or "")) for row in ROWS]
    assert [(text, asin or "", (time or "")[:10]) for text, asin, time in found] == expected


def test_lines_in_parts_and_lines_without_a_value(tmp_path: Path) -> None:
    path = tmp_path / "r.jsonl"
    path.write_text("".join(json.dumps({"text": "x", "rating": 1, "k": f"v{i}"}) + "\n" for i in range(50)), "utf-8")
    wanted = Wanted(unlabelled=True)
    sources = find_sources([str(path)], wanted)
    column = Column(beside(sources, "k", "--by", wanted)[0], Piece(sources[0], 0, None))
    assert column.at(np.array([1, 3, 4])).to_pylist() == ["v0", "v2", "v3"]
    assert column.at(np.array([], np.int64)).to_pylist() == []
    assert column.at(np.array([7, 50, 60])).to_pylist() == ["v6", "v49", None]
    assert Column(None, Piece(sources[0], 0, None)).at(np.array([1, 2])).to_pylist() == [None, None]


def test_a_missing_column_is_named_with_its_option(run: Path, tmp_path: Path) -> None:
    path = write(tmp_path / "r.csv")
    with pytest.raises(CorpusError, match=r"no column 'nix'; by can be text, rating|--by can be text, rating"):
        tenor.find_insights(run, path, tenor.InsightsSettings(by="nix", workers=1))
    with pytest.raises(CorpusError, match="has no dates"):
        tenor.find_insights(run, path, tenor.InsightsSettings(time="text", workers=1))
    plain = tmp_path / "r.ft.txt"
    plain.write_text("__label__1 bad\n__label__2 good\n", "utf-8")
    with pytest.raises(CorpusError, match="has no columns"):
        tenor.find_insights(run, plain, tenor.InsightsSettings(by="asin", workers=1))


@pytest.mark.parametrize(
    "wrong", [{"phrases": 0}, {"suspects": 1.5}, {"similarity": 0.2}, {"period": "hour"}, {"threads": -1}]
)
def test_wrong_settings_are_refused(wrong: dict[str, object]) -> None:
    with pytest.raises(UsageError):
        tenor.InsightsSettings(**wrong)  # type: ignore[arg-type]
