"""The places of tokens: the same tokens as the reference and the compiled tokeniser give, and where they are."""

from __future__ import annotations

import importlib.util
import itertools
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tenor.preparation.tokeniser.spans import token_spans
from tenor.preparation.tokeniser.tokenise import TokeniserSettings

_FILE = Path(__file__).resolve().parent.parent / "reference.py"


def _reference() -> Any:
    spec = importlib.util.spec_from_file_location("tokeniser_reference", _FILE)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module.reference_tokens


reference_tokens = _reference()
PIECES = [
    *["a", "Ä", "é", "e\u0301", "'", "’", "!", "?", " ", "3", "<br />", "<", "&amp;", "&eacute;", "&#39;", "&bogus;"],
    *["😀", "\u00ad", "\u1112\u1161\u11ab", "한", "İ", "ß", "x" * 70, "\n", "don't", ".", "&#x41;", "\ud800"],
]
RANDOM_TEXTS = st.lists(st.sampled_from(PIECES), max_size=14).map("".join)


@settings(max_examples=300, deadline=None)
@given(
    st.lists(st.sampled_from(PIECES), max_size=14).map("".join), st.booleans(), st.sampled_from(["words", "letters"])
)
def test_the_tokens_are_those_of_the_reference(text: str, marks: bool, clean: str) -> None:
    found = token_spans(text, TokeniserSettings(clean, marks))
    expected = reference_tokens(text.encode("utf-8", "replace").decode(), clean, marks)
    assert [letter.character for letter in found] == expected
    assert all(0 <= span.start < span.end <= len(text) for span in found)
    assert all(before.end <= after.start for before, after in itertools.pairwise(found))


@pytest.mark.parametrize(
    ("text", "pieces"),
    [
        ("Not BAD at all!!", ["Not", "BAD", "at", "all", "!"]),
        ("Don’t <b>stop</b> caf&eacute;", ["Don’t", "stop", "caf&eacute;"]),
        ("cafe\u0301 ok", ["cafe\u0301", "ok"]),
        ("", []),
    ],
)
def test_the_places_are_those_of_the_words(text: str, pieces: list[str]) -> None:
    assert [text[span.start : span.end] for span in token_spans(text, TokeniserSettings())] == pieces


def test_stop_words_are_skipped_and_words_can_be_spelled() -> None:
    settings = TokeniserSettings(stopwords=("the",), units="characters")
    found = token_spans("The 영화 ok", settings)
    assert [(s.character, s.start) for s in found] == [("영", 4), ("화", 5), ("o", 7), ("k", 8)]
