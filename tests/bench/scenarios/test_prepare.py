"""Scenario `prepare` with a tiny file: the chosen rows and their figures."""

from __future__ import annotations

import pytest
from preparation.reference import reference_tokens

from tenor.bench.peers.prepare import polars_words, words_of
from tenor.bench.scenarios import bench
from tenor.bench.scenarios.prepare import time_by_stage
from tenor.bench.settings import BenchSettings
from tenor.errors import UsageError
from tenor.reports.report import render
from tenor.reports.result_file import parse_result
from tenor.reports.settings import ReportSettings


def test_rows_and_figures() -> None:
    settings = BenchSettings(workers="1", repeats=1, warmups=0, rows="tenor-1,wc", megabytes=1)
    result = bench("prepare", settings)
    assert [row["name"] for row in result.rows] == ["tenor-1", "wc"]
    for row in result.rows:
        assert row["mb_per_s"] == pytest.approx(row["megabytes"] / row["seconds"])
    assert result.rows[1]["of_wc"] == 1.0
    assert len(result.notes) == 1 and result.notes[0].startswith("Time of tenor-1 by stage: ")
    assert all(stage in result.notes[0] for stage in ("reading", "removing duplicates", "writing shards"))
    shown = render([parse_result(result.as_dict())], ReportSettings())
    assert "wc -w" in shown and "megabytes per second" in shown and shown.count("<svg") == 1


def test_the_time_by_stage() -> None:
    runs = [{"reading": 5.0, "writing": 2.0}, {"reading": 7.0, "writing": 2.0}, {"reading": 6.0, "writing": 9.0}]
    assert time_by_stage(runs, 10.0) == "reading 60%, writing 20%, between stages 20%"


def test_an_unknown_row_is_refused() -> None:
    with pytest.raises(UsageError, match="rows has the unknown name"):
        bench("prepare", BenchSettings(rows="cobol", megabytes=1))


TEXTS = [
    "It's <b>GREAT</b>!<br />Not bad at all? Don't buy 2 of them.",
    "Cafe\u0301 d&eacute;j&agrave; vu &amp; more; a < b, c > d",
    "<p>&quot;Sehr gut&quot;</p> Straße 김치 &#39;ok&#39; don&#39;t",
]


@pytest.mark.parametrize("text", TEXTS)
def test_the_other_tools_find_the_same_words(text: str) -> None:
    assert words_of(text) == reference_tokens(text)


def test_polars_finds_the_same_words(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("_RJEM_MALLOC_CONF", "")  # polars sets it when it is imported
    polars = pytest.importorskip("polars")
    rows = polars.DataFrame({"row": range(len(TEXTS)), "text": TEXTS})
    found = polars_words(rows.lazy(), "text", "row").collect().sort("row")
    assert found["word"].to_list() == [reference_tokens(text) for text in TEXTS]
