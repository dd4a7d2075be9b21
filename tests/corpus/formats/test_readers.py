"""The compiled readers compared with Python's json and csv modules, and pieces compared with whole files."""

from __future__ import annotations

import csv
import io
import json
import os
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from helpers.corpora import make_reviews, write_csv, write_fasttext, write_json_lines
from hypothesis import given
from hypothesis import strategies as st

from tenor.corpus import pieces
from tenor.corpus.batch import Reject
from tenor.corpus.columns import Columns, Wanted
from tenor.corpus.files.inputs import expand
from tenor.corpus.formats import delimited
from tenor.corpus.formats import json_lines as jsonlines
from tenor.corpus.formats.registry import has_known_suffix
from tenor.corpus.scanning import blocks
from tenor.corpus.scanning.json_objects import read_line
from tenor.corpus.sources import find_sources
from tenor.corpus.texts import read_texts
from tenor.errors import CorpusError

COLUMNS = Columns("text", "rating", "title")
CELL = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\r\0"), max_size=12)
LONG = st.tuples(CELL, st.integers(0, 30)).map(lambda pair: pair[0] * pair[1])
VALUE = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | CELL,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(CELL, inner, max_size=3),
    max_leaves=6,
)


@given(
    st.lists(st.tuples(CELL | LONG, CELL | st.none(), st.integers(0, 9), st.dictionaries(CELL, VALUE)), max_size=6),
    st.booleans(),
)
def test_json_lines_as_python_reads_them(
    rows: list[tuple[str, str | None, int, dict[str, object]]], ascii: bool
) -> None:
    objects = [{**extra, "title": title, "text": text, "rating": rating} for text, title, rating, extra in rows]
    data = "".join(json.dumps(row, ensure_ascii=ascii) + "\n" for row in objects).encode()
    found = [row for batch in jsonlines.read(io.BytesIO(data), COLUMNS) for row in batch.rows.to_pylist()]
    expected = [((f"{title} " if title is not None else "") + text, str(rating)) for text, title, rating, _ in rows]
    by_line = sorted(found, key=lambda row: row["line"])
    assert [(row["text"], row["rating"]) for row in by_line] == expected


@given(st.binary(max_size=80))
def test_any_bytes_are_rows_or_rejects(data: bytes) -> None:
    """Each line that is not blank gives exactly one row or one reject."""
    lines = [line for line in data.removeprefix(blocks.BOM).split(b"\n") if line.strip(b" \t\r")]
    batches = list(jsonlines.read(io.BytesIO(data), COLUMNS))
    assert sum(batch.rows.num_rows + len(batch.rejects) for batch in batches) == len(lines)


ESCAPES = st.lists(
    st.sampled_from(["\\", '"', "\\u", "00e9", "d83d", "\\ude00", "\\n", "\t", "é", "x" * 40]), max_size=9
)


@given(st.lists(ESCAPES.map("".join), max_size=4))
def test_strings_with_escapes_are_read_as_python_reads_them(texts: list[str]) -> None:
    lines = [f'{{"text": "{text}", "rating": 5}}\n'.encode() for text in texts]
    filler = b'{"text": "y", "rating": 1}\n' * 4  # so that the lines before it are read with vector loads
    [batch] = jsonlines.read(io.BytesIO(b"".join(lines) + filler), COLUMNS)
    found: dict[int, object] = {row["line"]: (row["text"], row["rating"]) for row in batch.rows.to_pylist()}
    found |= {reject.line: reject.reason for reject in batch.rejects}
    assert [found[n + 1] for n in range(len(lines))] == [read_line(line, COLUMNS) for line in lines]


@given(st.lists(st.tuples(CELL, CELL, CELL), min_size=1, max_size=6), st.sampled_from(",\t;"))
def test_csv_as_python_reads_it(rows: list[tuple[str, str, str]], delimiter: str) -> None:
    if delimiter == "\t":  # a quoted newline before tabs looks like a line that begins with a quote
        rows = [(a, b, text.replace("\t", " ")) for a, b, text in rows]
    out = io.StringIO()
    writer = csv.writer(out, delimiter=delimiter, lineterminator="\n")
    writer.writerows(rows)
    assert read_delimited(out.getvalue(), delimiter)[0] == [(text, rating) for rating, _, text in rows]


@given(st.lists(st.tuples(CELL, CELL, CELL), min_size=1, max_size=6))
def test_tabs_without_quoting(rows: list[tuple[str, str, str]]) -> None:
    rows = [tuple(cell.translate(dict.fromkeys(map(ord, "\t\r\n"), " ")) for cell in row) for row in rows]
    lines = ["\t".join(row) for row in rows]
    found, rejects = read_delimited("\n".join(lines), "\t")
    assert not rejects and len(found) == len(rows)
    for got, (rating, _, text) in zip(found, rows, strict=True):
        assert got in (
            (text, rating),
            *((unquoted(text), r) for r in (rating, unquoted(rating))),
            (text, unquoted(rating)),
        )


def unquoted(cell: str) -> str:
    return cell[1:-1].replace('""', '"')


def read_delimited(content: str, delimiter: str) -> tuple[list[tuple[str, str]], list[Reject]]:
    stream = io.BytesIO(content.encode())
    batches = list(delimited.read(stream, delimiter, ["rating", "x", "text"], Columns("text", "rating")))
    rows = [(row["text"], row["rating"]) for batch in batches for row in batch.rows.to_pylist()]
    return rows, [reject for batch in batches for reject in batch.rejects]


def test_lines_that_begin_with_a_quote_in_a_file_without_quoting() -> None:
    lines = ["5\tx\tfine", '5\t"x\t"Great" it is', '1\tx\t"never closed', "5\tx\tgood", '5\tx\tends in a quote"']
    found, rejects = read_delimited("\n".join([*lines, '1\tx\t"two\nlines"', "5\tx\tlast"]), "\t")
    assert [text for text, _ in found] == [*(line.split("\t")[2] for line in lines), "two\nlines", "last"]
    assert not rejects


def test_every_line_of_a_record_with_a_wrong_quote_is_rejected() -> None:
    lines = ["5,x,fine", '5,x,"never closed', "1,x,swallowed", '5,x,"quoted"', "5,x,last"]
    found, rejects = read_delimited("\n".join(lines), ",")
    assert [text for text, _ in found] == ["fine", "last"]
    assert rejects == [Reject(line, "text after a closing quote") for line in (3, 4, 5)]


def test_a_record_without_end_costs_only_its_own_line(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(delimited, "BLOCK", 1 << 12)
    monkeypatch.setattr(delimited, "MAX_LINE", 1 << 14)
    rows = [f"5,x,row {number}\n" for number in range(4000)]
    found, rejects = read_delimited('1,x,"open\n' + "".join(rows), ",")
    assert len(found) == 4000 and rejects == [Reject(2, "quote not closed")]
    for long in ("1,x," + "word " * 20_000 + "\n", '1,x,"' + "word " * 20_000 + '"\n', "word " * 3300 + "\n"):
        found, rejects = read_delimited(rows[0] + long + "".join(rows[1:]), ",")
        assert len(found) == 4000 and rejects == [Reject(3, "line too long")]


@pytest.mark.parametrize("write", [write_json_lines, write_csv, write_fasttext])
def test_pieces_do_not_overlap_and_miss_nothing(tmp_path: Path, write: object, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pieces, "SMALLEST", 300)
    monkeypatch.setattr(blocks, "BLOCK", 128)
    monkeypatch.setattr(delimited, "BLOCK", 128)
    reviews = [
        r._replace(text=f'{r.text} "quoted\n{n}"' if write is write_csv else r.text)
        for n, r in enumerate(make_reviews(100))
    ]
    name = {write_json_lines: "r.jsonl", write_csv: "r.csv", write_fasttext: "r.ft"}[write]
    path = write(tmp_path / name, reviews)
    cut = pieces.plan(find_sources([path], Wanted()))
    assert len(cut) > 5
    batches = [batch for piece in cut for batch in pieces.read_piece(piece)]
    assert [text for batch in batches for text in batch.rows.column(0).to_pylist()] == [r.text for r in reviews]
    assert not any(batch.rejects for batch in batches)


def test_titles_come_before_the_text_whatever_the_column_order(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text("text,rating,title\nbody,5,Head\n")
    (tmp_path / "b.csv").write_text("title,text,rating\nHead,body,5\n")
    (tmp_path / "c.jsonl").write_text('{"text": "body", "rating": 5, "title": "Head"}\n')
    table = pa.table({"text": ["body"], "rating": [5], "title": pa.array(["Head"]).dictionary_encode()})
    pq.write_table(table, tmp_path / "d.parquet")
    for source in find_sources([tmp_path], Wanted(title="title")):
        [batch] = [b for b in pieces.read_piece(pieces.whole(source)) if b.rows.num_rows]
        assert batch.rows.column(0).to_pylist() == ["Head body"]


def test_folders_globs_and_addresses(tmp_path: Path) -> None:
    for name in ("b.jsonl", "a.csv.gz", "_SUCCESS", ".hidden.csv", "notes.md", "sub/c.parquet"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).touch()
    names = [str(Path(file).relative_to(tmp_path)) for file in expand([tmp_path], has_known_suffix)]
    assert names == ["a.csv.gz", "b.jsonl", "sub/c.parquet"]
    assert expand([f"{tmp_path}/*.jsonl", tmp_path / "b.jsonl"], has_known_suffix) == [str(tmp_path / "b.jsonl")]
    assert [Path(file).name for file in expand([f"file://{tmp_path}/*.jsonl"], has_known_suffix)] == ["b.jsonl"]
    with pytest.raises(CorpusError, match="no file matches"):
        expand([f"{tmp_path}/*.none"], has_known_suffix)
    with pytest.raises(CorpusError, match="known format"):
        (tmp_path / "empty").mkdir()
        expand([tmp_path / "empty"], has_known_suffix)


def test_addresses_are_read_like_files(tmp_path: Path) -> None:
    path = write_json_lines(tmp_path / "r.jsonl.gz", make_reviews(20))
    [source] = find_sources([f"file://{path}"], Wanted())
    assert sum(batch.rows.num_rows for batch in pieces.read_piece(pieces.whole(source))) == 20


def test_texts_for_prediction(tmp_path: Path) -> None:
    reviews = make_reviews(20)
    expected = [review.text for review in reviews]
    (tmp_path / "plain").write_text("\n".join(expected))
    paths = [
        write_json_lines(tmp_path / "r.jsonl", reviews),
        write_csv(tmp_path / "r.csv.gz", reviews),
        tmp_path / "plain",
    ]
    for path in paths:
        assert [text for batch in read_texts(str(path)) for text in batch.to_pylist()] == expected
    (tmp_path / "bad.jsonl").write_text('{"text": "fine"}\nbroken\n')
    with pytest.raises(CorpusError, match="line 2"):
        list(read_texts(str(tmp_path / "bad.jsonl")))


def test_texts_keep_their_order_if_python_reads_some_lines(tmp_path: Path) -> None:
    expected = [f"text {number}" for number in range(12)]
    lines = [f'{{"text": "{text}", "price": {"NaN" if i % 3 == 1 else 1}}}\n' for i, text in enumerate(expected)]
    (tmp_path / "r.jsonl").write_text("".join(lines))
    assert [text for batch in read_texts(str(tmp_path / "r.jsonl")) for text in batch.to_pylist()] == expected
    [batch] = jsonlines.read(io.BytesIO("".join(lines).encode()), Columns("text", None))
    assert batch.rows.column(2).to_pylist() == list(range(1, 13))


@pytest.mark.timeout(30)  # opening a pipe that nobody writes to would block for ever
def test_a_pipe_is_refused(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "r.jsonl")
    (tmp_path / "link.jsonl").symlink_to("r.jsonl")
    for path in (tmp_path / "r.jsonl", tmp_path / "link.jsonl", Path("/dev/null")):
        with pytest.raises(CorpusError, match=f"^{path}: is a pipe or device.*; write its content to a file first"):
            find_sources([path], Wanted())
        with pytest.raises(CorpusError, match="is a pipe or device"):
            list(read_texts(str(path)))
