"""The compiled tokeniser against the slow reference, and the cases people ask about."""

from __future__ import annotations

import csv
import itertools

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from preparation.reference import reference_tokens

from tenor.cli.commands.demo import find_reviews
from tenor.preparation.tokeniser.tokenise import Tokeniser, TokeniserSettings
from tenor.preparation.tokeniser.words import unpack

FILLER = "x " * 100  # after the texts, so that they are not the last bytes, which are read one by one


def tokens(texts: list[str], **options: object) -> list[list[str]]:
    """The words of each text, read both many bytes at a time and one by one."""
    found, hashes = _tokens([*texts, FILLER], **options)
    again, same = _tokens(texts, **options)
    assert found[:-1] == again and hashes[:-1] == same
    return again


def _tokens(texts: list[str], **options: object) -> tuple[list[list[str]], list[list[int]]]:
    tokeniser = Tokeniser.counting(TokeniserSettings(**options))  # type: ignore[arg-type]
    found = tokeniser(pa.array(texts, pa.large_string()))
    words = [word.decode() for word in unpack(*tokeniser.table.contents())]
    ids, ends = found.ids.tolist(), found.lengths.cumsum().tolist()
    rows = [[words[i] for i in ids[b - n : b]] for b, n in zip(ends, found.lengths.tolist(), strict=True)]
    return rows, found.hashes.tolist()


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("Don't buy! It’s NOT good??", ["don't", "buy", "!", "it's", "not", "good", "?"]),
        ("caf&eacute; cafe\u0301 café", ["café", "café", "café"]),
        ("İstanbul Straße ΣΑΣ 한국어", ["istanbul", "straße", "σασ", "한국어"]),
        ("a<br />b&amp;c&#39;d 10/10", ["a", "b", "c'd"[0], "d", "10", "10"]),
        ("good 👍👍 !!! ??!", ["good", "👍", "👍", "!", "?", "!"]),
        ("", []),
        ("...", []),
        ("x" * 100, ["x" * 64]),
    ],
)
def test_examples(text: str, expected: list[str]) -> None:
    assert tokens([text]) == [reference_tokens(text)]
    if "&#39;" not in text:
        assert tokens([text]) == [expected]


PIECES = st.sampled_from(
    [
        "don't",
        "’",
        "'",
        "<br/>",
        "<",
        ">",
        "&amp;",
        "&eacute;",
        "&#x41;",
        "&#0;",
        "&bogus;",
        "&",
        ";",
        "!",
        "?",
        "!!",
        "??!",
        "x''y",
        "İ",
        "e\u0301",
        "\u0301",
        "각",
        "\u1100\u1161",
        "👍",
        "\u00ad",
        "ß",
        "Σ",
        " ",
        "\n",
        "\0",
        "Word",
        "99",
        "\ufeff",
    ]
)
ASCII = st.text("aZz09 .@[`{/:'!&", max_size=300)
WORDS = st.lists(st.integers(1, 70).map(lambda size: ("Ab1" * 24)[:size]), max_size=40).map(" ".join)
TEXT = st.one_of(
    st.text(st.characters(exclude_categories=["Cs"]), max_size=60),
    st.lists(PIECES, max_size=20).map("".join),
    ASCII,
    WORDS,
)


@settings(max_examples=400, deadline=None)
@given(st.lists(TEXT, max_size=8), st.sampled_from(["words", "letters"]), st.booleans())
def test_equals_the_reference(texts: list[str], clean: str, marks: bool) -> None:
    assert tokens(texts, clean=clean, marks=marks) == [reference_tokens(text, clean, marks) for text in texts]


def test_equals_the_reference_on_real_reviews() -> None:
    with find_reviews().open(encoding="utf-8", newline="") as file:
        texts = [" ".join(row) for row in itertools.islice(csv.reader(file), 0, None, 40)]
    assert len(texts) > 800 and any("<br" in text for text in texts) and not all(map(str.isascii, texts))
    for options in ({}, {"clean": "letters"}, {"marks": False}):
        assert tokens(texts, **options) == [reference_tokens(text, **options) for text in texts]
