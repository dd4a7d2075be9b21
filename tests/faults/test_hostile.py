"""Every hostile file gives rows read = kept + duplicates + dropped + rejected, or a clear failure."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest
from faults.hostile import CASES, GOOD, Case
from helpers.command import run_tenor
from hypothesis import given
from hypothesis import strategies as st

from tenor.corpus import pieces
from tenor.corpus.columns import Wanted
from tenor.corpus.sources import find_sources
from tenor.errors import CorpusError
from tenor.preparation.job.accounting import passing_share
from tenor.preparation.job.prepare import prepare
from tenor.preparation.settings import PrepareSettings

SETTINGS = PrepareSettings(workers=1, max_rejects=1.0)


@pytest.mark.parametrize("case", CASES.values(), ids=CASES.keys())
def test_every_row_is_accounted_for(tmp_path: Path, case: Case) -> None:
    path = tmp_path / case.file
    path.write_bytes(case.data)
    if case.fails:
        with pytest.raises(CorpusError, match=case.fails) as raised:
            prepare([path], tmp_path / "out", SETTINGS)
        assert str(path) in str(raised.value)
        assert [file.name for file in tmp_path.iterdir()] == [case.file]
        return
    result = prepare([path], tmp_path / "out", SETTINGS)
    assert result.rejected == case.rejected
    assert result.rows_kept == len(GOOD) + case.more
    assert result.dropped == {"neutral": case.dropped, **({"empty": case.empty} if case.empty else {})}
    refused = sum(result.rejected.values())
    assert result.rows_read == result.rows_kept + result.duplicates + case.dropped + case.empty + refused
    listed = [json.loads(line) for line in (tmp_path / "out" / "rejects.jsonl").read_text().splitlines()]
    assert sorted(row["reason"] for row in listed) == sorted(r for r, n in case.rejected.items() for _ in range(n))
    assert all(row["file"] == str(path) and row["line"] > 0 for row in listed)


def test_the_set_is_large_enough() -> None:
    assert len(CASES) >= 40


def test_rejects_are_located_by_line(tmp_path: Path) -> None:
    good = [json.dumps({"text": r.text, "rating": r.rating}) for r in GOOD]
    lines = [*good[:4], "broken", *good[4:], '{"text": "x", "rating": true}']
    (tmp_path / "r.jsonl").write_text("\n".join(lines))
    prepare([tmp_path / "r.jsonl"], tmp_path / "out", SETTINGS)
    listed = [json.loads(line) for line in (tmp_path / "out" / "rejects.jsonl").read_text().splitlines()]
    assert [(row["line"], row["reason"]) for row in listed] == [(5, "invalid JSON"), (32, "bad rating")]


def test_rejects_of_a_table_are_located_by_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pieces, "SMALLEST", 300)
    rows = [f"{r.text},{r.rating}" for r in GOOD]
    (tmp_path / "r.csv").write_text("\n".join(["text,rating", "few", *rows, '"two\nlines",5', "one,more,few"]))
    assert len(pieces.plan(find_sources([tmp_path / "r.csv"], Wanted()))) > 1
    prepare([tmp_path / "r.csv"], tmp_path / "out", SETTINGS)
    listed = [json.loads(line) for line in (tmp_path / "out" / "rejects.jsonl").read_text().splitlines()]
    assert [row["line"] for row in listed] == [2, 35]


@pytest.mark.parametrize("workers", [1, 2])
def test_a_file_name_that_is_not_utf8(tmp_path: Path, workers: int) -> None:
    paths = [Path(os.fsdecode(os.fsencode(tmp_path) + b"/r\xff%d.jsonl" % n)) for n in range(2)]
    for path in paths:
        path.write_bytes(CASES["not json"].data)
    prepare(paths, tmp_path / "out", PrepareSettings(workers=workers, max_rejects=1.0))
    listed = [json.loads(line) for line in (tmp_path / "out" / "rejects.jsonl").read_text("utf-8").splitlines()]
    assert [row["file"] for row in listed] == [str(path) for path in paths]
    assert json.loads((tmp_path / "out" / "job.json").read_text("utf-8"))["inputs"] == [str(path) for path in paths]
    told = run_tenor("prepare", *paths, "--out", tmp_path / "other", "--workers", "1").failed(1)
    assert "r\\udcff0.jsonl: 2 of 62 rows" in told


def test_too_many_rejects_fail_and_name_the_first(tmp_path: Path) -> None:
    (tmp_path / "r.jsonl").write_bytes(CASES["not json"].data)
    with pytest.raises(CorpusError, match=r"1 of 31 rows .* line 31.* with max_rejects 0\.033$"):
        prepare([tmp_path / "r.jsonl"], tmp_path / "out", PrepareSettings(workers=1))
    assert not (tmp_path / "out").exists()


@given(st.integers(1, 10**9), st.integers(1, 10**9))
def test_the_share_that_is_named_passes_and_is_no_larger_than_needed(rejected: int, more: int) -> None:
    read = rejected + more
    share = float(passing_share(rejected, read))
    assert rejected <= share * read and share <= min(1.0, 1.1 * rejected / read + 1e-9)


def test_shares_that_floating_point_would_get_wrong() -> None:
    assert [passing_share(29, 100), passing_share(32, 800), passing_share(5, 5)] == ["0.3", "0.04", "1"]
