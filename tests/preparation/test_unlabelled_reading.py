"""Which rows and files count as unlabelled, in each format; what is not understood is still rejected."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from helpers.corpora import make_reviews, write_csv, write_fasttext, write_json_lines

from tenor.corpus.columns import Wanted
from tenor.corpus.labels import NO_RATING, canonical
from tenor.corpus.pieces import read_piece, whole
from tenor.corpus.scanning import blocks
from tenor.corpus.sources import find_sources
from tenor.errors import CorpusError, UsageError
from tenor.preparation.job.prepare import prepare
from tenor.preparation.settings import PrepareSettings

KEEP = PrepareSettings(workers=1, unlabelled=True, max_rejects=1.0)
GOOD = make_reviews(40)


def _json(*rows: str) -> bytes:
    return b"".join(f"{row}\n".encode() for row in rows)


def _table(rating: Any) -> bytes:
    out = pa.BufferOutputStream()
    pq.write_table(pa.table({"text": ["one", "two", None, "four", "five"], "rating": rating}), out)
    return bytes(out.getvalue())


BOTH = '{"text": "%s", "rating": %s}'
# name → (file, content, unlabelled texts, reasons of the rejected rows); the other rows are labelled
CASES: dict[str, tuple[str, bytes, list[str], list[str]]] = {
    "json": (
        "r.jsonl",
        _json(
            BOTH % ("one", "5"),
            BOTH % ("two", "null"),
            '{"text": "three"}',
            BOTH % ("four", '""'),
            BOTH % ("five", '"  "'),
            '{"rating": null, "text": "six \\u00e9"}',
            BOTH % ("bad", '"nice"'),
            BOTH % ("bad", "true"),
            BOTH % ("bad", "NaN"),
            BOTH % ("bad", "[]"),
            BOTH % ("bad", "{}"),
            '{"text": null}',
            '{"rating": null}',
            '{"text": 7}',
            '{"text": "twice", "rating": null, "rating": 5}',
            '{"text": "twice", "rating": 5, "rating": null}',
            '{"text": "no end',
        ),
        ["two", "three", "four", "five", "six é"],
        [*["bad rating"] * 5, *["missing text"] * 2, "text is not a string", *["repeated key"] * 2, "invalid JSON"],
    ),
    "json array": (
        "r.json",
        b'[{"text": "one", "rating": 1}, {"text": "two"}, {"text": "three", "rating": null}]',
        ["two", "three"],
        [],
    ),
    "csv": (
        "r.csv",
        b'text,rating\none,5\ntwo,\nthree,""\nfour, \n"five, more",\nbad,nice\nbad,nan\nbad\n"open,\n',
        ["two", "three", "four", "five, more"],
        ["bad rating", "bad rating", "wrong number of columns", "quote not closed"],
    ),
    "csv, lines end in CR LF": ("r.csv", b"text,rating\r\none,5\r\ntwo,\r\n", ["two"], []),
    "tsv": ("r.tsv", b"rating\ttext\n5\tone\n\ttwo\nnull\tbad\n", ["two"], ["bad rating"]),
    "fasttext": (
        "r.ft",
        b"__label__1 one\ntwo words\n  three\r\n__label__ four\n__label__1 __label__2 bad\nbad __label__2\n"
        b"\n__label__x bad\n__label__ bad __label__2\nfive__label__2\n",
        ["two words", "three\r", "four", "five__label__2"],
        ["several labels", "no label", "no label", "bad rating"],
    ),
    "parquet, numbers": ("r.parquet", _table([5, None, None, None, 1]), ["two", "four"], ["missing text"]),
    "parquet, words": (
        "r.parquet",
        _table(["5", None, "1", "", "so"]),
        ["two", "four"],
        ["missing text", "bad rating"],
    ),
    "parquet, not a number": (
        "r.parquet",
        _table(pa.array([5.0, None, 1.0, float("nan"), 2.0])),
        ["two"],
        ["missing text", "bad rating"],
    ),
    "parquet, only nulls": ("r.parquet", _table(pa.nulls(5)), ["one", "two", "four", "five"], ["missing text"]),
    "json without ratings": ("r.jsonl", _json('{"text": "one"}', '{"text": "two", "id": 1}'), ["one", "two"], []),
    "csv without ratings": ("r.csv", b"id,reviewText\n1,one\n2,two\n", ["one", "two"], []),
    "csv of one column": ("r.csv", b'text\none\n"two, three"\n', ["one", "two, three"], []),
}


@pytest.mark.parametrize("name", list(CASES))
def test_missing_and_empty_ratings_are_unlabelled(tmp_path: Path, name: str) -> None:
    file, content, texts, reasons = CASES[name]
    (tmp_path / file).write_bytes(content)
    [source] = find_sources([tmp_path / file], Wanted(unlabelled=True))
    batches = list(read_piece(whole(source)))
    found = [row for batch in batches for row in batch.rows.to_pylist()]
    assert [row["text"] for row in found if canonical(row["rating"]) == NO_RATING] == texts
    more = [write_csv(tmp_path / "good.csv", GOOD)]
    if source.kind.format == "fasttext":
        more = [write_fasttext(tmp_path / "good.ft", GOOD)]
    result = prepare([*more, tmp_path / file], tmp_path / "out", KEEP)
    assert result.rejected == dict(Counter(reasons))
    assert result.splits["unlabelled"]["rows"] == len(texts)
    listed = [json.loads(line) for line in (tmp_path / "out" / "rejects.jsonl").read_text().splitlines()]
    assert sorted(row["reason"] for row in listed) == sorted(reasons)


def test_a_parquet_file_without_a_rating_column(tmp_path: Path) -> None:
    pq.write_table(pa.table({"review": ["one", None, "three"], "id": [1, 2, 3]}), tmp_path / "r.parquet")
    result = prepare([write_csv(tmp_path / "good.csv", GOOD), tmp_path / "r.parquet"], tmp_path / "out", KEEP)
    assert (result.splits["unlabelled"]["rows"], result.rejected) == (2, {"missing text": 1})


def test_ratings_that_begin_after_many_lines_are_found(tmp_path: Path) -> None:
    lines = [*(f'{{"text": "nothing said {n}"}}' for n in range(300)), *(BOTH % (f"text {n}", 5) for n in range(4))]
    (tmp_path / "r.jsonl").write_bytes(_json(*lines))
    [source] = find_sources([tmp_path / "r.jsonl"], Wanted(unlabelled=True))
    assert source.columns is not None and source.columns.rating == "rating"


@pytest.mark.parametrize(
    ("file", "content", "match"),
    [
        ("r.csv", b"review,stars\nfine,5\n", "no known text and label columns among review, stars"),
        ("r.jsonl", b'{"review": "fine", "stars": 5}\n', "no known text and label columns"),
        ("r.jsonl", b'{"review": "x"}\n' * 200 + b'{"review": "x", "stars": 5}\n', "no known text and label columns"),
        ("r.csv", b"text,rating,rating\nfine,5,1\n", "2 columns are called 'rating'"),
        ("r.csv", b"text,text\nfine,5\n", "2 columns are called 'text'"),
        ("r.csv", b"body,title\nfine,5\n", "no known text column; --text-column can be body, title"),
        ("r.txt", b"plain text\n", "does not have a known format"),
    ],
)
def test_a_file_with_unknown_columns_is_not_taken_for_unlabelled(
    tmp_path: Path, file: str, content: bytes, match: str
) -> None:
    (tmp_path / file).write_bytes(content)
    with pytest.raises(CorpusError) as caught:
        find_sources([write_csv(tmp_path / "good.csv", GOOD), tmp_path / file], Wanted(unlabelled=True))
    assert match in caught.value.for_command_line


def test_a_named_rating_column_must_be_in_some_file(tmp_path: Path) -> None:
    plain = [(tmp_path / "r.csv"), (tmp_path / "r.jsonl")]
    plain[0].write_bytes(b"text,stars\nfirst,1\n")
    plain[1].write_bytes(b'{"text": "second"}\n')
    settings = PrepareSettings(workers=1, unlabelled=True, label_column="score")
    with pytest.raises(CorpusError, match="no column 'score'"):
        prepare(plain, tmp_path / "out", settings)
    named = write_csv(tmp_path / "good.csv", GOOD, label="score")
    assert prepare([*plain, named], tmp_path / "out", settings).splits["unlabelled"]["rows"] == 2


def test_without_the_option_the_same_files_are_refused(tmp_path: Path) -> None:
    good = write_csv(tmp_path / "good.csv", GOOD)
    (tmp_path / "r.csv").write_bytes(b"text\nfirst\n")
    with pytest.raises(CorpusError, match="no known text and label columns among text"):
        prepare([good, tmp_path / "r.csv"], tmp_path / "out", PrepareSettings(workers=1))
    (tmp_path / "r.csv").write_bytes(b"text,rating\nfirst,\n")
    result = prepare([good, tmp_path / "r.csv"], tmp_path / "out", PrepareSettings(workers=1, max_rejects=1.0))
    assert result.rejected == {"bad rating": 1} and list(result.splits) == ["train", "valid", "test"]


def test_unlabelled_files_do_not_decide_what_ratings_mean(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_bytes(b"text\nfirst\n")
    labelled = [json.dumps({"text": review.text, "label": review.rating > 3}) for review in GOOD]
    (tmp_path / "b.jsonl").write_bytes(_json('{"text": "second", "label": null}', *labelled))
    result = prepare([tmp_path / "a.csv", tmp_path / "b.jsonl"], tmp_path / "booleans", KEEP)
    assert (result.rows_kept, result.splits["unlabelled"]["rows"]) == (42, 2)
    stars = write_fasttext(tmp_path / "c.ft", GOOD)
    result = prepare([tmp_path / "a.csv", stars], tmp_path / "numbers", KEEP)
    positive = sum(split["classes"].get("positive", 0) for split in result.splits.values())
    assert (result.rows_kept, positive) == (41, sum(review.rating > 3 for review in GOOD))
    with pytest.raises(UsageError, match="mixed with ratings of other files"):
        prepare([tmp_path / "a.csv", stars, write_json_lines(tmp_path / "d.jsonl", GOOD)], tmp_path / "both", KEEP)


def test_unlabelled_rows_before_booleans(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The first batches have no rating, so they say nothing about what ratings mean."""
    monkeypatch.setattr(blocks, "BLOCK", 1024)
    plain = [BOTH % (f"nothing said {n}", "null") for n in range(60)]
    labelled = [BOTH % (review.text, json.dumps(review.rating > 3)) for review in GOOD]
    (tmp_path / "r.jsonl").write_bytes(_json(*plain, *labelled))
    result = prepare([tmp_path / "r.jsonl"], tmp_path / "out", KEEP)
    assert (result.rows_kept, result.splits["unlabelled"]["rows"], result.rejected) == (100, 60, {})
