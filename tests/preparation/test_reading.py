"""How the input is written: delimiters, encodings, arrays, archives, booleans, standard input."""

from __future__ import annotations

import gzip
import importlib.util
import io
import json
import math
import random
import sys
from pathlib import Path

import numba
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from faults.hostile import zipped
from helpers.command import run_tenor
from helpers.corpora import Review, make_reviews, write_csv, write_fasttext, write_json_lines
from hypothesis import given
from hypothesis import strategies as st

from tenor import compiled
from tenor.cli.commands.prepare import summary
from tenor.corpus.columns import Columns, Wanted
from tenor.corpus.files import encodings
from tenor.corpus.formats import json_lines as jsonlines
from tenor.corpus.formats import parquet
from tenor.corpus.labels import canonical
from tenor.corpus.pieces import plan, read_piece, whole
from tenor.corpus.scanning.json_array import array_lines
from tenor.corpus.scanning.json_objects import read_line
from tenor.corpus.sources import find_sources
from tenor.corpus.texts import read_texts
from tenor.errors import CorpusError, UsageError
from tenor.preparation.job import startup
from tenor.preparation.job.prepare import prepare
from tenor.preparation.job.result import PrepareResult
from tenor.preparation.rules import start_rule
from tenor.preparation.settings import PrepareSettings
from tenor.progress import Silent

REVIEWS = [r._replace(text=f"{r.text} déjà vu") for r in make_reviews(60)]
Rows = list[tuple[str, str]]
EXPECTED: Rows = [(review.text, str(review.rating)) for review in REVIEWS]


def rows(path: Path, **wanted: str) -> tuple[Rows, list[tuple[int, str]]]:
    """(rows as text and rating, rejects) of a file read in pieces."""
    batches = [b for piece in plan(find_sources([path], Wanted(**wanted))) for b in read_piece(piece)]
    found = [(row["text"], row["rating"]) for batch in batches for row in batch.rows.to_pylist()]
    return found, [tuple(reject) for batch in batches for reject in batch.rejects]


@pytest.mark.parametrize("delimiter", [",", ";", "\t", "|"])
def test_the_header_tells_the_delimiter(tmp_path: Path, delimiter: str) -> None:
    path = write_csv(tmp_path / "r.csv", REVIEWS, delimiter=delimiter)
    assert rows(path) == (EXPECTED, [])
    assert [text for batch in read_texts(str(path)) for text in batch.to_pylist()] == [r.text for r in REVIEWS]


def test_a_delimiter_that_is_named_makes_any_file_a_table(tmp_path: Path) -> None:
    assert rows(write_csv(tmp_path / "r.txt", REVIEWS, delimiter="~"), delimiter="~") == (EXPECTED, [])
    assert rows(write_csv(tmp_path / "r.dat", REVIEWS, delimiter="\t"), delimiter="tab") == (EXPECTED, [])
    with pytest.raises(CorpusError, match="text_column and label_column"):
        rows(write_csv(tmp_path / "r.csv", REVIEWS), delimiter=";")


def test_a_format_that_is_named_counts_more_than_the_name(tmp_path: Path) -> None:
    assert rows(write_csv(tmp_path / "r.txt", REVIEWS), format="csv") == (EXPECTED, [])
    assert rows(write_json_lines(tmp_path / "r.csv", REVIEWS), format="json") == (EXPECTED, [])
    with pytest.raises(CorpusError, match="does not have a known format; give format"):
        rows(write_csv(tmp_path / "r.txt", REVIEWS))


@pytest.mark.parametrize(
    ("options", "told"),
    [
        ({"delimiter": "ab"}, "delimiter 'ab' cannot separate columns"),
        ({"delimiter": '"'}, "cannot separate"),
        ({"delimiter": "é"}, "cannot separate"),
        ({"encoding": "klingon"}, "encoding 'klingon' is not a text encoding"),
        ({"encoding": "base64"}, "is not a text encoding"),
        ({"encoding": "rot13"}, "is not a text encoding"),
    ],
)
def test_options_that_mean_nothing_are_refused(options: dict[str, str], told: str) -> None:
    with pytest.raises(UsageError, match=told):
        PrepareSettings(**options)  # type: ignore[arg-type]


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "latin-1", "cp1252", "utf-16", "utf-16-le", "utf-32"])
@pytest.mark.parametrize("write", [write_json_lines, write_csv])
def test_every_encoding_gives_the_same_rows(
    tmp_path: Path, encoding: str, write: object, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(encodings, "_CHUNK", 7)  # characters lie across chunks
    path = write(tmp_path / ("r.jsonl" if write is write_json_lines else "r.csv"), REVIEWS)  # type: ignore[operator]
    path.write_bytes(path.read_bytes().decode().encode(encoding))
    assert rows(path, encoding=encoding) == (EXPECTED, [])
    (tmp_path / "p.gz").write_bytes(gzip.compress(path.read_bytes()))
    packed = rows(tmp_path / "p.gz", encoding=encoding, format="json" if write is write_json_lines else "csv")
    assert packed == (EXPECTED, [])


def test_bytes_that_the_encoding_does_not_have_cost_their_row_alone(tmp_path: Path) -> None:
    lines = ["text,rating", "fine,5", "caf\x81,5", "café,1"]
    (tmp_path / "r.csv").write_bytes("\n".join(lines).encode("latin-1"))
    assert rows(tmp_path / "r.csv", encoding="cp1252") == ([("fine", "5"), ("café", "1")], [(3, "invalid cp1252")])
    (tmp_path / "r.jsonl").write_bytes('{"text": "fine", "rating": 5}\n'.encode("utf-16-le") + b"\x00\xd8\n\x00")
    assert rows(tmp_path / "r.jsonl", encoding="utf-16-le")[1] == [(2, "invalid utf-16-le")]


def test_utf16_without_a_byte_order_mark_is_refused(tmp_path: Path) -> None:
    (tmp_path / "r.csv").write_bytes("text,rating\nfine,5\n".encode("utf-16-le"))
    with pytest.raises(CorpusError, match=r"r\.csv: is not utf-16 text: .* give utf-16-le or utf-16-be"):
        rows(tmp_path / "r.csv", encoding="utf-16")
    assert rows(tmp_path / "r.csv", encoding="utf-16-le") == ([("fine", "5")], [])


VALUE = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(st.sampled_from('ab"\\[]{},\n é'), max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner, max_size=3),
    max_leaves=8,
)


@given(st.lists(VALUE, min_size=1, max_size=6), st.sampled_from([None, 1]), st.integers(1, 40))
def test_an_array_is_split_at_its_elements(values: list[object], indent: int | None, block: int) -> None:
    data = json.dumps(values, indent=indent, ensure_ascii=False).encode()

    class Blocks(io.BytesIO):
        def read(self, size: int | None = -1) -> bytes:
            return super().read(block)

    lines = array_lines(Blocks(data), "f").read().splitlines()  # type: ignore[arg-type]
    assert [json.loads(line) for line in lines] == values


def test_archives_arrays_and_standard_input_give_the_bytes_of_a_plain_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = write_json_lines(tmp_path / "r.jsonl", REVIEWS)
    lines = path.read_bytes().splitlines(keepends=True)
    (tmp_path / "r.json").write_bytes(b"[" + b",".join(lines) + b"]")
    (tmp_path / "r.zip").write_bytes(zipped({"b/2.jsonl": b"".join(lines[30:]), "a.jsonl": b"".join(lines[:30])}))
    expected = prepare([path], tmp_path / "plain", PrepareSettings(workers=1)).manifest_sha256
    for workers, name in ((1, "r.json"), (2, "r.zip")):
        made = prepare([tmp_path / name], tmp_path / f"out-{name}", PrepareSettings(workers=workers))
        assert made.manifest_sha256 == expected
    words = ("prepare", "-", "--out", tmp_path / "piped", "--workers", "1", "--json")
    made = run_tenor(*words, input=gzip.compress(path.read_bytes())).ok().json
    assert made["manifest_sha256"] == expected
    assert not [file.name for file in tmp_path.iterdir() if file.name.startswith(".")]
    assert json.loads((tmp_path / "piped" / "job.json").read_text())["inputs"] == ["-"]
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(b"what is this")))
    with pytest.raises(CorpusError, match=r"^standard input: does not have a known format; give format"):
        prepare(["-"], tmp_path / "none", PrepareSettings(workers=1))
    assert not [file.name for file in tmp_path.iterdir() if file.name.startswith(".")]


def test_rejects_of_an_archive_name_the_member(tmp_path: Path) -> None:
    data = write_json_lines(tmp_path / "r.jsonl", REVIEWS).read_bytes()
    (tmp_path / "r.zip").write_bytes(zipped({"a.jsonl": data, "b.jsonl": data + b"broken\n"}))
    prepare([tmp_path / "r.zip"], tmp_path / "out", PrepareSettings(workers=1, max_rejects=1.0))
    listed = [json.loads(line) for line in (tmp_path / "out" / "rejects.jsonl").read_text().splitlines()]
    assert listed == [{"file": f"{tmp_path}/r.zip/b.jsonl", "line": 61, "reason": "invalid JSON"}]


def _booleans(folder: Path) -> list[Path]:
    """The reviews labelled by whether they are positive, as JSON, CSV and Parquet."""
    texts, good = [r.text for r in REVIEWS], [r.rating > 3 for r in REVIEWS]
    lines = [json.dumps({"text": t, "label": g}) for t, g in zip(texts, good, strict=True)]
    (folder / "a.jsonl").write_text("\n".join(lines))
    write_csv(folder / "b.csv", [Review(t, g) for t, g in zip(texts, good, strict=True)], label="label")
    pq.write_table(pa.table({"text": texts, "label": good}), folder / "c.parquet")
    return [folder / name for name in ("a.jsonl", "b.csv", "c.parquet")]


def test_true_is_positive_and_false_negative(tmp_path: Path) -> None:
    expected = [(r.text, int(r.rating > 3)) for r in REVIEWS]
    for settings in (PrepareSettings(), PrepareSettings(negative="false", positive="True")):
        for path in _booleans(tmp_path):
            assert _labelled(path, settings) == expected, path
    turned = PrepareSettings(negative="true", positive="false")
    assert _labelled(tmp_path / "a.jsonl", turned) == [(text, 1 - label) for text, label in expected]


def _labelled(path: Path, settings: PrepareSettings) -> list[tuple[str, int]]:
    (source,) = find_sources([path], settings.wanted)
    rule = start_rule(settings, [source])
    rows = [row for batch in read_piece(whole(source)) for row in batch.rows.to_pylist()]
    return [(row["text"], rule.label(canonical(row["rating"]))) for row in rows]


def test_booleans_of_any_format_are_prepared(tmp_path: Path) -> None:
    result = prepare(_booleans(tmp_path), tmp_path / "out", PrepareSettings(workers=1))
    assert (result.rows_read, result.rows_kept, result.duplicates) == (180, 60, 120)
    stars = write_json_lines(tmp_path / "stars.jsonl", REVIEWS, label="label")
    with pytest.raises(CorpusError, match=r"60 of 120 rows cannot be used .bad rating 60"):
        prepare([tmp_path / "a.jsonl", stars], tmp_path / "mixed", PrepareSettings(workers=1))


def test_labels_as_the_compiled_reader_and_python_read_them() -> None:
    for value in (b"true", b"false", b"null", b"NaN", b"[true]", b"tru", b"7" * 400, b'"true"'):
        line = b'{"text": "x", "rating": ' + value + b"}\n"
        [batch] = jsonlines.read(io.BytesIO(line), Columns("text", "rating"))
        found = batch.rows.column(1).to_pylist() or [reject.reason for reject in batch.rejects]
        expected = read_line(line, Columns("text", "rating"))
        assert found == [expected if isinstance(expected, str) else expected[1]]


@pytest.mark.parametrize("options", [{}, {"use_dictionary": False, "column_encoding": {"text": "DELTA_BYTE_ARRAY"}}])
def test_long_texts_of_parquet_come_a_few_at_a_time(
    options: dict[str, object], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(parquet, "_SLICE", 1 << 20)
    monkeypatch.setattr(parquet, "_DELTA", 4 << 20)
    texts, out = ["a" * 300_000, None, *["b" * 200_000] * 100, "c" * 2_000_000], io.BytesIO()
    pq.write_table(pa.table({"text": texts, "rating": [5.0] * len(texts)}), out, compression="zstd", **options)
    batches = list(parquet.read(out, Columns("text", "rating"), "f"))
    assert [text for b in batches for text in b.rows.column(0).to_pylist()] == [t for t in texts if t]
    assert [line for b in batches for line in b.rows.column(2).to_pylist()] == [1, *range(3, 104)]
    assert all(sum(map(len, b.rows.column(0).to_pylist())) <= max(1 << 20, 2_000_000) for b in batches)
    assert len(batches) >= math.ceil(22.3 / 1.05)


@pytest.mark.parametrize("seed", range(40))
def test_damaged_parquet_never_ends_in_a_traceback(seed: int) -> None:
    out, rng = io.BytesIO(), random.Random(seed)
    pq.write_table(pa.table({"text": ["a b", "c"] * 20, "rating": [1, 5] * 20}), out, row_group_size=10)
    data = bytearray(out.getvalue())
    for _ in range(4):
        data[rng.randrange(4, len(data) - 8)] ^= 1 << rng.randrange(8)
    try:
        names, groups = parquet.inspect(io.BytesIO(data), "f")
        if {"text", "rating"} <= set(names):
            list(parquet.read(io.BytesIO(data), Columns("text", "rating"), "f", 0, len(groups)))
    except CorpusError as error:
        assert "f: " in str(error)


def test_fasttext_files_are_not_asked_for_booleans(tmp_path: Path) -> None:
    result = prepare([write_fasttext(tmp_path / "r.ft", REVIEWS)], tmp_path / "out", PrepareSettings(workers=1))
    assert result.rows_kept == 60


def test_the_summary_is_short_and_says_why_rows_are_gone() -> None:
    splits = {"train": {"rows": 9, "tokens": 80, "classes": {"negative": 4, "positive": 5}, "shards": 1}}
    result = PrepareResult(
        "data", 1234567, 1234500, 5, {"neutral": 10, "empty": 40}, {"bad rating": 2, "invalid JSON": 10}, 80, 30_000,
        ("negative", "positive"), splits, 12.345, 6.377e-06, "local", 2, "00",
    )  # fmt: skip
    shown = summary(result)
    assert max(map(len, shown.splitlines())) <= 80
    assert "  dropped            50  empty 40, neutral 10\n" in shown
    assert "  rejected           12  invalid JSON 10, bad rating 2\n" in shown
    assert "12.3 s, 6.4 B/s, local engine, 2 workers" in shown and "vocabulary: 30,000 entries" in shown
    assert not any(sign in shown for sign in ("e-0", "{", "('"))


class Heard(Silent):
    def __init__(self) -> None:
        self.lines: list[str] = []

    def say(self, line: str) -> None:
        self.lines.append(line)


def test_compiling_is_announced_only_when_it_has_to_happen(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "fresh.py").write_text(
        "from tenor.compiled import compiled\n\n@compiled\ndef twice(x):\n    return 2 * x\n"
    )
    monkeypatch.setattr(numba.config, "CACHE_DIR", str(tmp_path / "cache"))
    spec = importlib.util.spec_from_file_location("fresh", tmp_path / "fresh.py")
    assert spec and spec.loader
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    assert not compiled.is_kept(module.twice)
    assert module.twice(2) == 4 and compiled.is_kept(module.twice)
    for is_kept, lines in ((True, []), (False, [startup.COMPILING])):
        monkeypatch.setattr(compiled, "is_kept", lambda function, is_kept=is_kept: is_kept)
        heard = Heard()
        startup.announce(heard)
        assert heard.lines == lines
