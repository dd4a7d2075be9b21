"""The prepare scenario at a tiny size: the rows asked for, with their figures."""

from __future__ import annotations

import pytest

from tenor.bench.scenarios import bench
from tenor.bench.settings import BenchSettings
from tenor.errors import UsageError
from tenor.reports.bench_report import render


def test_rows_and_figures() -> None:
    settings = BenchSettings(workers="1", repeats=1, warmups=0, rows="tenor-1,wc", megabytes=1)
    result = bench("prepare", settings)
    assert [row["name"] for row in result.rows] == ["tenor-1", "wc"]
    for row in result.rows:
        assert row["mb_per_s"] == pytest.approx(row["megabytes"] / row["seconds"])
    assert result.rows[1]["of_wc"] == 1.0
    shown = render(result)
    assert "wc -w" in shown and "megabytes a second" in shown and shown.count("<svg") == 1


def test_an_unknown_row_is_refused() -> None:
    with pytest.raises(UsageError, match="no row"):
        bench("prepare", BenchSettings(rows="cobol", megabytes=1))
