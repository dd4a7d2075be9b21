"""Files at URLs, from web servers that behave differently."""

from __future__ import annotations

import socket
from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from fsspec.asyn import get_loop
from helpers.corpora import make_reviews, write_csv, write_json_lines
from helpers.served import serving

from tenor.corpus import pieces
from tenor.corpus.columns import Wanted
from tenor.corpus.sources import find_sources
from tenor.errors import CorpusError, Unreachable
from tenor.preparation.job.prepare import prepare
from tenor.preparation.settings import PrepareSettings

# More than the 5 MB that fsspec reads at once. The copies differ in their last word; 60,000 draws would take seconds.
SOME = make_reviews(1000)
REVIEWS = [review._replace(text=f"{review.text} m{copy}") for copy in range(60) for review in SOME]
TEXTS = [review.text for review in REVIEWS]
FILES = ["r.jsonl", "r.csv", "r.csv.gz"]


@pytest.fixture(scope="module")
def address(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    folder = tmp_path_factory.mktemp("served")
    write_json_lines(folder / "r.jsonl", REVIEWS)
    write_csv(folder / "r.csv", REVIEWS)
    write_csv(folder / "r.csv.gz", REVIEWS)
    pq.write_table(pa.table({"text": TEXTS, "rating": [r.rating for r in REVIEWS]}), folder / "r.parquet")
    get_loop()  # starts its thread, which lives as long as the process
    with serving(folder) as found:
        yield found


def read(name: str) -> list[str]:
    planned = pieces.plan(find_sources([name], Wanted()))
    return [
        text for piece in planned for batch in pieces.read_piece(piece) for text in batch.rows.column(0).to_pylist()
    ]


@pytest.mark.parametrize("server", ["ranges", "plain", "sizeless"])
@pytest.mark.parametrize("file", FILES)
def test_every_kind_of_server_gives_every_row(
    address: str, server: str, file: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(pieces, "SMALLEST", 1 << 20)
    monkeypatch.setattr(pieces, "LARGEST", 1 << 20)
    name = f"{address}/{server}/{file}"
    assert read(name) == TEXTS
    parts = 1 if server != "ranges" or file.endswith(".gz") else 4
    assert len(pieces.plan(find_sources([name], Wanted()))) >= parts


def test_parquet_needs_a_server_that_sends_parts(address: str) -> None:
    assert read(f"{address}/ranges/r.parquet") == TEXTS
    for server in ("plain", "sizeless"):
        with pytest.raises(CorpusError, match=f"{server}/r.parquet: .* send parts of a file; download the file first"):
            read(f"{address}/{server}/r.parquet")


@pytest.mark.parametrize("file", FILES)
def test_a_connection_that_breaks(address: str, file: str) -> None:
    with pytest.raises(Unreachable, match=f"dropping/{file}: cannot be read to its end: "):
        read(f"{address}/dropping/{file}")


def test_the_error_says_what_the_server_answered(address: str) -> None:
    with pytest.raises(Unreachable, match="cannot be read: 500 Internal Server Error"):
        read(f"{address}/failing/r.jsonl")
    with pytest.raises(Unreachable, match="cannot be read: 404 Not Found; check the address"):
        read(f"{address}/plain/none.jsonl")
    with socket.socket() as unheard:
        unheard.bind(("127.0.0.1", 0))
        port = unheard.getsockname()[1]
        with pytest.raises(Unreachable, match=f"cannot be read: Cannot connect to host 127.0.0.1:{port}"):
            read(f"http://127.0.0.1:{port}/r.jsonl")


def test_a_query_does_not_hide_the_suffix(address: str) -> None:
    for file in FILES:
        [source] = find_sources([f"{address}/ranges/{file}?x=[1]&y=2.1"], Wanted())
        assert source.kind.format == ("json" if file == "r.jsonl" else "csv")


def test_work_done_before_a_server_failed_is_kept(address: str, tmp_path: Path) -> None:
    path = write_json_lines(tmp_path / "r.jsonl", make_reviews(100))
    with pytest.raises(Unreachable):
        prepare([path, f"{address}/dropping/r.csv"], tmp_path / "out", PrepareSettings(workers=1))
    assert list(tmp_path.glob(".out.preparing/*/pieces/000000"))
