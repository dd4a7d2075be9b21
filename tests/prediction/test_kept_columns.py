"""Columns of the input beside the predictions: their types, names, and values that no JSON has."""

from __future__ import annotations

import csv
import datetime as dt
import json
import math
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import tenor
from tenor.errors import CorpusError, UsageError

KEPT = tenor.PredictSettings(workers=1, keep_columns=True)
DAY, TIME = dt.date(2024, 5, 31), dt.datetime(2024, 5, 31, 12, 30)


def predict(run: Path, raw: Path, out: Path, settings: tenor.PredictSettings = KEPT) -> list[dict[str, Any]]:
    """The rows of the output."""
    tenor.predict(run, raw, out, settings)
    if out.suffix == ".csv":
        with out.open(newline="", encoding="utf-8") as file:
            return list(csv.DictReader(file))
    if out.suffix == ".parquet":
        return list(pq.read_table(out).to_pylist())
    return [json.loads(line, parse_constant=pytest.fail) for line in out.read_text("utf-8").splitlines()]


def test_parquet_keeps_the_types_of_columns(run: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Pieces and tables of two rows must agree on one type per column."""
    monkeypatch.setattr("tenor.prediction.output.TABLE_ROWS", 2)
    columns = {
        "id": [1 << 60, 2, None, 4, 5],
        "price": [1.5, None, 2.25, 3.0, 4.0],
        "paid": [True, False, None, True, True],
        "day": [DAY] * 5,
        "at": [TIME] * 5,
        "none": pa.nulls(5, pa.int32()),
        "tags": [["a", "b"]] * 5,
    }
    pq.write_table(pa.table({"text": ["superb"] * 5, **columns}), tmp_path / "new.parquet")
    rows = predict(run, tmp_path / "new.parquet", tmp_path / "out.parquet")
    for name in ("id", "price", "paid", "day", "at"):
        assert [row[name] for row in rows] == columns[name], name
    assert {row["none"] for row in rows} == {None} and {row["tags"] for row in rows} == {'["a", "b"]'}
    as_csv = predict(run, tmp_path / "new.parquet", tmp_path / "out.csv")[0]
    found = [as_csv[name] for name in ("id", "price", "paid", "day", "at", "none")]
    assert found == [str(1 << 60), "1.5", "true", "2024-05-31", "2024-05-31 12:30:00", ""]


def test_times_of_pandas_keep_their_type(run: Path, tmp_path: Path) -> None:
    pandas = pytest.importorskip("pandas", reason="pandas is not installed")
    times = pandas.to_datetime(["2024-05-31 12:30:00.123456789", None])
    frame = pandas.DataFrame({"text": ["superb"] * 2, "at": times, "zoned": times.tz_localize("Europe/Berlin")})
    frame.to_parquet(tmp_path / "new.parquet")
    first, second = predict(run, tmp_path / "new.parquet", tmp_path / "out.parquet")
    assert first["at"] == dt.datetime(2024, 5, 31, 12, 30, 0, 123456) and second["at"] is second["zoned"] is None
    assert first["zoned"] == dt.datetime(2024, 5, 31, 10, 30, 0, 123456, dt.UTC)


@pytest.mark.parametrize(
    ("values", "expected"),
    [
        ([1, 2, 3, 4.5], [1.0, 2.0, 3.0, 4.5]),
        ([1, 2, "x", 4.5], ["1", "2", "x", "4.5"]),
        ([(1 << 53) + 1, 2, 3, 4.5], ["9007199254740993", "2", "3.0", "4.5"]),
        ([1 << 70, 2, 3, 4], [str(1 << 70), "2", "3", "4"]),
        ([True, False, 1, 0], ["true", "false", "1", "0"]),
        ([None, None, None, 7], [None, None, None, 7]),
    ],
)
def test_mixed_columns_of_json(
    run: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, values: list[Any], expected: list[Any]
) -> None:
    monkeypatch.setattr("tenor.prediction.output.TABLE_ROWS", 2)
    lines = [json.dumps({"text": "superb", "x": value}) for value in values]
    (tmp_path / "new.jsonl").write_text("\n".join(lines), "utf-8")
    rows = predict(run, tmp_path / "new.jsonl", tmp_path / "out.parquet")
    assert [row["x"] for row in rows] == expected
    assert [type(row["x"]) for row in rows] == [type(value) for value in expected]


@pytest.mark.parametrize("out", ["out.jsonl", "out.csv", "out.parquet"])
def test_values_that_json_does_not_have(run: Path, tmp_path: Path, out: str) -> None:
    """NaN, infinite numbers and half surrogate pairs are common in exports of other programs."""
    line = b'{"text": "superb", "price": NaN, "more": [Infinity, 2], "user": "a\\ud83d", "\\ud83d": "\xc3\xa9"}\n'
    (tmp_path / "new.jsonl").write_bytes(line)
    row = predict(run, tmp_path / "new.jsonl", tmp_path / out)[0]
    assert row["label"] == "positive" and row["price"] in (None, "")
    assert row["more"] == ([None, 2] if out == "out.jsonl" else "[null, 2]")
    assert row["user"] == "a\\ud83d" and row["\\ud83d"] == "é"


def test_bytes_of_a_parquet_file_are_text(run: Path, tmp_path: Path) -> None:
    columns = {"text": [b"superb caf\xc3\xa9"], "odd": [b"\xff"], "x": [math.inf]}
    pq.write_table(pa.table(columns), tmp_path / "new.parquet")
    row = predict(run, tmp_path / "new.parquet", tmp_path / "out.jsonl")[0]
    assert (row["text"], row["odd"], row["x"]) == ("superb café", "\\xff", None)


@pytest.mark.parametrize("out", ["out.jsonl", "out.csv"])
def test_predictions_can_be_predicted_again(run: Path, tmp_path: Path, out: str) -> None:
    """No column of the first output is lost in the second one."""
    (tmp_path / "new.csv").write_text("text,label\nsuperb,truth\n", "utf-8")
    settings = tenor.PredictSettings(workers=1, keep_columns=True, probabilities=True)
    (tmp_path / "once").mkdir()
    predict(run, tmp_path / "new.csv", tmp_path / "once" / "rows.csv", settings)
    row = predict(run, tmp_path / "once" / "rows.csv", tmp_path / out, settings)[0]
    assert row["original_label"] == "truth" and row["original_original_label"] == row["label"] == "positive"
    assert float(row["original_probability"]) == float(row["probability"])
    assert float(row["original_probability_positive"]) == pytest.approx(float(row["probability"]))


def test_a_few_bytes_do_not_become_gigabytes(run: Path, tmp_path: Path) -> None:
    """A column that is only copied is as dangerous as the text."""
    long, zeros = "x" * (1 << 20), np.zeros(80 << 20, np.int8)
    lists = pa.ListArray.from_arrays(np.arange(81, dtype=np.int32) << 20, zeros)
    for number, column in enumerate((pa.array([long] * 80), pa.array([[long]] * 80), lists)):
        raw = tmp_path / f"{number}.parquet"
        pq.write_table(pa.table({"text": ["superb"] * 80, "x": column}), raw, compression="zstd")
        assert raw.stat().st_size < 1 << 18
        with pytest.raises(CorpusError, match="unpacks to more than 250 times its size"):
            predict(run, raw, tmp_path / "out.jsonl")


def test_a_damaged_column_is_an_error_of_the_file(run: Path, tmp_path: Path) -> None:
    raw = tmp_path / "new.parquet"
    table = pa.table({"text": ["superb"] * 500, "x": [f"{number:0100d}" for number in range(500)]})
    pq.write_table(table, raw, compression="snappy", use_dictionary=False)
    place = pq.ParquetFile(raw).metadata.row_group(0).column(1).data_page_offset
    data = bytearray(raw.read_bytes())
    data[place + 20 : place + 60] = b"\xff" * 40
    raw.write_bytes(data)
    assert tenor.predict(run, raw, tmp_path / "out.jsonl", workers=1) == 500
    with pytest.raises(CorpusError, match="damaged Parquet data"):
        predict(run, raw, tmp_path / "out.jsonl")


def test_a_data_frame_is_no_file(run: Path, tmp_path: Path) -> None:
    frame: Any = pa.table({"text": ["superb"]})
    with pytest.raises(UsageError, match=r"got a Table instead of names of files; give it to tenor\.load"):
        tenor.predict(run, frame, tmp_path / "out.jsonl")
    for function in (tenor.find_insights, tenor.measure_drift):
        with pytest.raises(UsageError, match="got a Table instead of names of files; save it as a file first"):
            function(run, frame)
