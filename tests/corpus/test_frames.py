"""A table in memory gives what a Parquet file with its rows gives, mistakes are named, and nothing is left behind."""

from __future__ import annotations

import hashlib
import importlib.util
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from helpers.corpora import make_reviews

import tenor
from tenor.corpus.columns import Wanted
from tenor.corpus.frames import is_frame, save_frame
from tenor.errors import CorpusError, UsageError

REVIEWS = make_reviews(60)
TEXTS: list[str | None] = [review.text for review in REVIEWS]
STARS: list[int | None] = [review.rating for review in REVIEWS]
TEXTS[3] = STARS[5] = None
COLUMNS = {"text": TEXTS, "rating": STARS}
SETTINGS = tenor.PrepareSettings(workers=1, max_rejects=0.5)
POLARS_VARIABLE = "_RJEM_MALLOC_CONF"  # Polars sets it when it is imported
REJECTED = [(4, "missing text"), (6, "missing rating")]


@pytest.fixture(autouse=True)
def without_variable_of_polars(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(POLARS_VARIABLE, "")


class Stream:
    """An object of a library that nobody knows."""

    def __arrow_c_stream__(self, requested_schema: Any = None) -> Any:
        return pa.table(COLUMNS).__arrow_c_stream__(requested_schema)


def pandas_frame(**more: Any) -> Any:
    return pytest.importorskip("pandas", reason="pandas is not installed").DataFrame({**COLUMNS, **more})


def polars_frame() -> Any:
    return pytest.importorskip("polars", reason="Polars is not installed").DataFrame(COLUMNS)


def hashes(folder: Path) -> dict[str, str]:
    files = [path for path in folder.rglob("*") if path.is_file() and path.name not in ("job.json", "rejects.jsonl")]
    return {str(path.relative_to(folder)): hashlib.sha256(path.read_bytes()).hexdigest() for path in files}


@pytest.fixture(scope="module")
def expected(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """What the Parquet file gives."""
    folder = tmp_path_factory.mktemp("parquet")
    pq.write_table(pa.table(COLUMNS), folder / "rows.parquet")
    tenor.prepare(folder / "rows.parquet", folder / "data", SETTINGS)
    return hashes(folder / "data")


@pytest.mark.parametrize(
    "make",
    [
        lambda: pandas_frame(number=[object()] * 60),  # a column that Arrow does not take, but nobody reads
        polars_frame,
        lambda: pa.table(COLUMNS),
        lambda: {**COLUMNS, "other": "not a column"},
    ],
    ids=["pandas", "Polars", "Arrow", "dict"],
)
def test_a_frame_gives_the_bytes_of_the_parquet_file(
    make: Callable[[], Any], expected: dict[str, str], tmp_path: Path
) -> None:
    result = tenor.prepare(make(), tmp_path / "data", SETTINGS)
    assert hashes(tmp_path / "data") == expected
    assert (result.rows_read, result.rejected) == (60, {"missing rating": 1, "missing text": 1})
    rejects = [json.loads(line) for line in (tmp_path / "data" / "rejects.jsonl").read_text().splitlines()]
    assert [(row["line"], row["reason"]) for row in rejects] == REJECTED
    assert {row["file"] for row in rejects} == {"data frame"}
    assert [path.name for path in tmp_path.iterdir()] == ["data"]


def saved(frame: Any, folder: Path, wanted: Wanted | None = None) -> pa.Table:
    return pq.read_table(save_frame(frame, wanted or Wanted(), folder).path)


def test_every_kind_of_column_is_saved_with_the_same_values(tmp_path: Path) -> None:
    frames: list[Any] = [Stream(), pa.table(COLUMNS).to_reader(), pa.table(COLUMNS).to_batches()[0]]
    frames += [{"text": pa.array(TEXTS).dictionary_encode(), "rating": np.array(STARS, float)}]
    frames += [{"text": np.array(TEXTS, object), "rating": tuple(STARS), 7: [1]}]
    if importlib.util.find_spec("pandas"):
        frames += [pandas_frame().astype({"text": "category"}), pandas_frame().convert_dtypes()]
        frames += [pandas_frame().set_index(np.arange(60)[::-1]), dict(pandas_frame())]
    if importlib.util.find_spec("polars"):
        import polars as pl

        frames += [polars_frame().with_columns(pl.col("text").cast(pl.Categorical)), polars_frame().to_dict()]
    for frame in frames:
        found = saved(frame, tmp_path).to_pydict()
        assert found == COLUMNS, type(frame)


def test_columns_are_recognised_or_named_as_in_files(tmp_path: Path) -> None:
    table = pa.table({"stars": STARS, "comment": TEXTS, "title": TEXTS, "text": TEXTS, "label": STARS})
    assert saved(table, tmp_path).column_names == ["text", "label"]
    assert saved(table, tmp_path, Wanted("comment", "stars", "title")).column_names == ["comment", "stars", "title"]
    assert saved(table.select(["comment"]), tmp_path, Wanted("comment", unlabelled=True)).column_names == ["comment"]
    if importlib.util.find_spec("pandas"):
        numbered = pandas_frame().rename(columns={"text": 0, "rating": 1})
        assert saved(numbered, tmp_path, Wanted("0", "1")).column_names == ["0", "1"]
    also = save_frame(table, Wanted(), tmp_path, also=["title", "absent"])
    assert pq.read_schema(also.path).names == ["text", "label", "title"]


def test_large_frames_are_cut_into_row_groups_that_workers_share(tmp_path: Path) -> None:
    file = save_frame({"text": ["word " * 200] * 20_000, "rating": [1] * 20_000}, Wanted(), tmp_path)
    groups = file.find(Wanted())[0].details["groups"]
    assert len(groups) == 3 and max(groups) < 9 << 20  # one text again and again is not taken for an attack


@pytest.mark.parametrize(
    ("frame", "told"),
    [
        ({"rating": [1]}, "data frame: no known text and label columns among rating; name them with text_column"),
        ({"text": ["a"]}, "no known text and label columns among text"),
        ({}, r"among \(none\)"),
        ({"text": [], "rating": []}, "data frame: holds no rows; give a frame with reviews in it"),
        ({"text": ["a", 1], "rating": [1, 2]}, "column 'text' does not hold values of one type: Expected bytes"),
        ({"text": ["a", "b"], "rating": [1, "x"]}, "column 'rating' does not hold values of one type"),
        ({"text": ["a"], "rating": [1, 2]}, "columns differ in length: 'text' 1, 'rating' 2; give one value per row"),
        ({"text": "abc", "rating": [1, 2, 3]}, "column 'text' is a str; give a list or an array"),
        ({"text": {0: "a"}, "rating": {0: 1}}, "column 'text' is a dict"),
        ({"text": ["a"], "rating": 5}, "column 'rating' is a int"),
        ({"text": [["a"]], "rating": [1]}, "column 'text' holds list<.*string>, not text or numbers"),
        (pa.table([["a"], ["b"], [1]], ["text", "text", "rating"]), "2 columns are called 'text'"),
    ],
)
def test_a_frame_that_cannot_be_used_is_refused(frame: Any, told: str, tmp_path: Path) -> None:
    with pytest.raises(CorpusError, match=told):
        tenor.prepare(frame, tmp_path / "data", SETTINGS)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("given", [5, None, [{"text": "a"}], [pa.table(COLUMNS)], np.zeros((2, 2))])
def test_what_is_neither_a_file_nor_a_frame_is_refused(given: Any, tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"neither the name of a file nor a data frame; give names of files, or"):
        tenor.prepare(given, tmp_path / "data", SETTINGS)


def test_one_column_is_not_a_frame(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"a ChunkedArray is not a data frame: .*; give a data frame of pandas"):
        tenor.prepare(pa.table(COLUMNS)["text"], tmp_path / "data", SETTINGS)
    with pytest.raises(UsageError, match="format csv does not fit a data frame; omit it"):
        tenor.prepare(COLUMNS, tmp_path / "data", SETTINGS, format="csv")
    assert not is_frame("text") and not is_frame(["reviews.csv"]) and list(tmp_path.iterdir()) == []


def test_the_same_frame_again_is_recognised_and_another_is_refused(tmp_path: Path) -> None:
    first = tenor.prepare(COLUMNS, tmp_path / "data", SETTINGS)
    assert tenor.prepare(pa.table(COLUMNS), tmp_path / "data", SETTINGS) == first
    with pytest.raises(UsageError, match="data"):
        tenor.prepare({**COLUMNS, "rating": [*STARS[:-1], None]}, tmp_path / "data", SETTINGS)


def test_the_saved_file_is_removed_if_the_rows_are_refused(tmp_path: Path) -> None:
    with pytest.raises(CorpusError, match=r"data frame: 2 of 60 rows cannot be used .* the first in line 4"):
        tenor.prepare(COLUMNS, tmp_path / "data", workers=1, max_rejects=0.0)
    assert list(tmp_path.iterdir()) == []
