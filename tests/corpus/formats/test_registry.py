"""The registry of formats: every entry loads, and files are recognised by content before name."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest
from helpers.processes import child_environment, python

from tenor.corpus import pieces
from tenor.corpus.columns import Wanted
from tenor.corpus.formats import registry
from tenor.corpus.sources import find_sources
from tenor.errors import UsageError


def test_every_format_has_its_registered_name() -> None:
    assert [found.name for found in registry.all_formats()] == list(registry.FORMATS)
    suffixes = [suffix for found in registry.all_formats() for suffix in found.suffixes]
    assert len(set(suffixes)) == len(suffixes)
    labelled = [found.name for found in registry.all_formats() if found.has_labels]
    assert ("auto", *labelled) == registry.LABELLED_CHOICES
    assert {"json", "csv", "tsv", "fasttext", "parquet"} <= set(labelled) and "text" not in labelled
    assert ("auto", *registry.FORMATS) == registry.TEXT_CHOICES


@pytest.mark.parametrize(
    ("name", "start", "expected"),
    [
        ("r.csv", b"__label__1 good", "fasttext"),
        ("r.jsonl", b"\xef\xbb\xbf \n__label__1 good", "fasttext"),
        ("r.csv", b'{"text": "x"}', "csv"),
        ("r.csv.gz", b"a,b", "csv"),
        ("r", b'{"text": "x"}\n', "json"),
        ("r.txt", b'[ {"text": "x"}]', "json"),
        ("r.txt", b"[1, 2]", None),
        ("r.ft.txt", b"", "fasttext"),
        ("r.ft.csv", b"", "csv"),
        ("r.ft", b"", "fasttext"),
        ("https://host/r.tsv?x=1.2", b"", "tsv"),
        ("r.PQ", b"", "parquet"),
        ("r.md", b"# Title", None),
    ],
)
def test_the_content_counts_more_than_the_name_if_it_is_certain(name: str, start: bytes, expected: str | None) -> None:
    assert registry.recognise(name, start) == expected


def test_binary_formats_are_recognised_by_their_first_bytes() -> None:
    found = registry.binary_format(b"PAR1xyz")
    assert found is not None and found.name == "parquet"
    assert registry.binary_format(b" PAR1") is None


def test_an_array_is_one_piece(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pieces, "SMALLEST", 100)
    rows = [f'{{"text": "good {n}", "rating": 5}}' for n in range(50)]
    (tmp_path / "lines.json").write_text("\n".join(rows))
    (tmp_path / "array.json").write_text("[" + ",\n".join(rows) + "]")
    lines, array = (pieces.plan(find_sources([tmp_path / f"{name}.json"], Wanted())) for name in ("lines", "array"))
    assert len(lines) > 5 and len(array) == 1
    assert sum(batch.rows.num_rows for batch in pieces.read_piece(array[0])) == 50


@pytest.mark.parametrize(
    ("places", "message"),
    [
        ({"none": "no_such_module:X"}, "the format 'none' cannot be loaded: No module named 'no_such_module'"),
        ({"none": "json:X"}, "cannot be loaded: module 'json' has no attribute 'X'"),
        ({"none": "json:loads"}, "json:loads is not a format called 'none'"),
        ({"other": "tenor.corpus.formats.fasttext:FASTTEXT"}, "is not a format called 'other'"),
        ({}, "format does not know 'none'; choose one of auto, .*json"),
    ],
)
def test_an_installed_format_that_cannot_be_used(
    places: dict[str, str], message: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(registry, "_installed", lambda: places)
    with pytest.raises(UsageError, match=message):
        registry.format_named(next(iter(places), "none"))


def test_the_names_of_formats_are_known_without_importing_readers() -> None:
    code = (
        "import sys, tenor.corpus.formats.registry; print({'numpy', 'pyarrow', 'importlib.metadata'} & {*sys.modules})"
    )
    done = subprocess.run(python("-c", code), env=child_environment(), capture_output=True, timeout=60, check=False)
    assert done.stdout == b"set()\n", done.stderr
