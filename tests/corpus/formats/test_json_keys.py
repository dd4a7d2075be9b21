"""Columns of JSON lines that do not occur in the first lines."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from helpers.corpora import make_reviews

from tenor.corpus.columns import Wanted
from tenor.corpus.sources import find_sources
from tenor.corpus.texts import read_texts
from tenor.errors import CorpusError
from tenor.preparation.job.prepare import prepare
from tenor.preparation.settings import PrepareSettings

ROWS = [{"text": review.text, "rating": review.rating} for review in make_reviews(200)]
GOOD = "".join(json.dumps(row) + "\n" for row in ROWS)
LONG = json.dumps({"text": "good word " * 10_000, "rating": 5}) + "\n"
BARE = '{"id": 1}\n' * 150


@pytest.mark.parametrize(
    ("start", "rejected"),
    [(LONG, {}), ("junk\n" * 150, {"invalid JSON": 150}), (BARE, {"missing text": 150})],
    ids=["a long line", "bad lines", "lines of another kind"],
)
@pytest.mark.parametrize("named", [{}, {"text_column": "text", "label_column": "rating"}], ids=["recognised", "named"])
def test_columns_are_found_beyond_the_first_lines(
    tmp_path: Path, start: str, rejected: dict[str, int], named: dict[str, str]
) -> None:
    (tmp_path / "r.jsonl").write_text(start + GOOD)
    settings = PrepareSettings(workers=1, max_rejects=0.5, **named)  # type: ignore[arg-type]
    result = prepare(tmp_path / "r.jsonl", tmp_path / "out", settings)
    assert result.rejected == rejected
    assert result.rows_kept == 200 + (start is LONG)


def test_a_title_is_found_in_a_late_line(tmp_path: Path) -> None:
    (tmp_path / "r.jsonl").write_text(GOOD + '{"text": "body", "rating": 5, "summary": "head"}\n')
    [source] = find_sources([tmp_path], Wanted(title="summary"))
    assert source.columns and source.columns.title == "summary"


def test_named_columns_are_accepted_if_not_all_lines_were_seen(tmp_path: Path) -> None:
    (tmp_path / "r.jsonl").write_text('{"id": 1}\n' * 20_000 + '{"body": "b", "stars": 5, "head": "h"}\n')
    [source] = find_sources([tmp_path], Wanted("body", "stars", "head"))
    assert source.columns and (source.columns.text, source.columns.rating) == ("body", "stars")
    with pytest.raises(CorpusError, match="name them with text_column"):
        find_sources([tmp_path], Wanted())


def test_a_column_that_no_line_of_any_file_has_is_refused(tmp_path: Path) -> None:
    for name in ("a", "b"):
        (tmp_path / f"{name}.jsonl").write_text(GOOD)
    with pytest.raises(CorpusError, match="no column 'txet'; text_column can be text, rating"):
        find_sources([tmp_path], Wanted(text="txet"))
    (tmp_path / "c.jsonl").write_text('{"txet": "b", "rating": 5}\n')
    assert len(find_sources([tmp_path], Wanted(text="txet"))) == 3


def test_texts_for_prediction_after_a_long_line(tmp_path: Path) -> None:
    (tmp_path / "r.jsonl").write_text(LONG + GOOD)
    assert sum(len(texts) for texts in read_texts(str(tmp_path / "r.jsonl"))) == 201
