"""Negated words: the compiled loop, the plain one and the reference agree, and runs without them stay as they are."""

from __future__ import annotations

import itertools
from dataclasses import replace
from pathlib import Path

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from preparation.reference import reference_negated, reference_tokens

from tenor import prepare
from tenor.errors import TenorError
from tenor.preparation.settings import PrepareSettings
from tenor.preparation.tokeniser.encode import Encoder
from tenor.preparation.tokeniser.negation import negated, readable
from tenor.preparation.tokeniser.spans import token_spans
from tenor.preparation.tokeniser.tokenise import Tokeniser, TokeniserSettings
from tenor.preparation.tokeniser.vocabulary import UNKNOWN, Vocabulary
from tenor.preparation.tokeniser.words import unpack
from tenor.store.manifest import Manifest

NEGATING = TokeniserSettings(negation=True)
ONE = PrepareSettings(workers=1)
WORDS = [
    *[
        "not",
        "never",
        "nothing",
        "no",
        "isn't",
        "without",
        "only",
        "but",
        "however",
        "good",
        "bad",
        "at",
        "all",
        "é",
        "cafe\u0301",
    ],
    *["!", "?", "x" * 62, "x" * 63, "x" * 80, "&eacute;", "😀", "¬", "¬bad", "."],
]
TEXTS = st.lists(st.lists(st.sampled_from(WORDS), max_size=12).map(" ".join), min_size=1, max_size=6)


def tokenised(tokeniser: Tokeniser, texts: list[str]) -> list[list[str]]:
    found = tokeniser(pa.array(texts, pa.large_string()))
    words = [word.decode() for word in unpack(*tokeniser.table.contents())]
    ends = itertools.accumulate(found.lengths.tolist())
    return [[words[i] for i in found.ids[b - n : b]] for b, n in zip(ends, found.lengths.tolist(), strict=True)]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("Not bad at all; the second half", "not ¬bad ¬at ¬all the second half"),
        ("There wasn't a dull moment in it", "there wasn't ¬a ¬dull ¬moment in it"),
        ("not only good but cheap", "not only good but cheap"),
        ("I do not, but you do", "i do not but you do"),
        ("No! Works fine", "no ! works fine"),
        ("nobody never complains", "nobody never ¬complains"),
        ("never ever", "never ¬ever"),
        ("Nothing about this film is interesting to me", "nothing ¬about ¬this ¬film ¬is ¬interesting to me"),
    ],
)
def test_examples(text: str, expected: str) -> None:
    (found,) = tokenised(Tokeniser.counting(NEGATING), [text])
    assert " ".join(found) == expected == " ".join(letter.character for letter in token_spans(text, NEGATING))


@settings(max_examples=200, deadline=None)
@given(TEXTS)
def test_all_ways_to_negate_agree(texts: list[str]) -> None:
    expected = [reference_negated(reference_tokens(text)) for text in texts]
    tokeniser = Tokeniser.counting(NEGATING)
    assert tokenised(tokeniser, texts) == expected
    assert tokenised(tokeniser, texts) == expected  # with a table that has grown
    assert [list(negated(reference_tokens(text))) for text in texts] == expected
    assert [[letter.character for letter in token_spans(text, NEGATING)] for text in texts] == expected


@settings(max_examples=50, deadline=None)
@given(TEXTS)
def test_an_encoder_gives_the_ids_of_its_vocabulary(texts: list[str]) -> None:
    words = ["good", "bad", "¬bad", "¬" + "x" * 62, "x" * 63, "at"]  # no negator: they are found nevertheless
    encoder = Encoder(Vocabulary(words), NEGATING.as_dict(), 100)
    ids = {word: place for place, word in enumerate(words, 2)}
    expected = [[ids.get(word, UNKNOWN) for word in reference_negated(reference_tokens(text))] for text in texts]
    for tokens, lengths in (encoder._ids(pa.array(texts, pa.large_string()), 100), encoder.in_python(texts)):
        ends = itertools.accumulate(lengths.tolist())
        assert [tokens[b - n : b].tolist() for b, n in zip(ends, lengths.tolist(), strict=True)] == expected


def test_a_phrase_is_shown_without_marks() -> None:
    assert readable(["¬work", "¬well"]) == ["not", "work", "well"]
    assert readable(["not", "¬work"]) == ["not", "work"]
    assert readable([]) == []


@pytest.fixture
def reviews(tmp_path: Path) -> Path:
    file = tmp_path / "reviews.csv"
    rows = [f"{1 + 4 * (i % 2)},it is {'not ' * (i % 3 == 0)}good number {i}" for i in range(40)]
    file.write_text("\n".join(["stars,text", *rows]) + "\n")
    return file


def vocabulary(folder: Path) -> set[str]:
    return set(Vocabulary.load(folder / "vocab.json").words)


def test_prepare_negates_unless_told_otherwise(reviews: Path, tmp_path: Path) -> None:
    prepare(reviews, tmp_path / "data", ONE)
    assert {"good", "¬good", "not", "¬number"} <= vocabulary(tmp_path / "data")
    assert Manifest.load(tmp_path / "data").tokeniser["negation"] is True
    plain = replace(ONE, negation=False)
    prepare(reviews, tmp_path / "plain", plain)
    assert not any(word.startswith("¬") for word in vocabulary(tmp_path / "plain"))
    assert "negation" not in Manifest.load(tmp_path / "plain").tokeniser


def test_a_borrowed_vocabulary_decides(reviews: Path, tmp_path: Path) -> None:
    prepare(reviews, tmp_path / "data", ONE)
    prepare(reviews, tmp_path / "plain", replace(ONE, negation=False))
    lenders = {"data": True, "plain": False, "data/vocab.json": True, "plain/vocab.json": False}
    for number, (lender, is_negated) in enumerate(lenders.items()):
        out = tmp_path / f"borrowed-{number}"
        prepare(reviews, out, replace(ONE, vocab=str(tmp_path / lender)))
        assert Manifest.load(out).tokeniser.get("negation", False) is is_negated
    with pytest.raises(TenorError, match="marks and negation"):
        prepare(reviews, tmp_path / "refused", replace(ONE, vocab=str(tmp_path / "data"), negation=False))


def test_characters_are_never_negated(tmp_path: Path) -> None:
    file = tmp_path / "reviews.csv"
    rows = [f"{1 + 4 * (i % 2)},not good 아주 좋은 영화입니다 정말 재미있어요 {i}" for i in range(40)]
    file.write_text("\n".join(["stars,text", *rows]) + "\n")
    prepare(file, tmp_path / "data", ONE)
    assert Manifest.load(tmp_path / "data").tokeniser["units"] == "characters"
    prepare(file, tmp_path / "plain", replace(ONE, negation=False))
    for name in ("vocab.json", "manifest.json", "train/00000.h5"):
        assert (tmp_path / "data" / name).read_bytes() == (tmp_path / "plain" / name).read_bytes()
