"""Words as characters: against Python's own strings, in prepare and in prediction."""

from __future__ import annotations

import itertools
import json
from collections import Counter
from pathlib import Path

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

import tenor
from tenor.errors import UsageError
from tenor.preparation.tokeniser import encode
from tenor.preparation.tokeniser.encode import Encoder
from tenor.preparation.tokeniser.spelling import Speller, code_points, count_characters, is_read_by_character
from tenor.preparation.tokeniser.vocabulary import Vocabulary
from tenor.preparation.tokeniser.words import pack
from tenor.store.manifest import Manifest
from tenor.store.reader import open_split

KOREAN = ["정말 재미있는 영화", "돈이 아까운 영화", "최고 최고 최고", "지루하고 재미없다", "재미있다 ok", "별로"] * 10
WORDS = st.lists(st.text(min_size=1, max_size=6), max_size=6)


@given(words=WORDS, count=st.integers(1, 3))
@example(words=["ok", "né", "영화", "𠀀a"], count=2)  # characters of one to four bytes
def test_characters_are_those_of_python(words: list[str], count: int) -> None:
    words = [word for word in words if word.isprintable()]
    packed = pack([word.encode() for word in words])
    points, bounds = code_points(*packed)
    assert [list(map(chr, points[a:b])) for a, b in itertools.pairwise(bounds)] == list(map(list, words))
    totals = count_characters(*packed, np.full(len(words), count))
    expected = Counter("".join(words))
    assert {chr(point): int(totals[point]) // count for point in np.flatnonzero(totals)} == dict(expected)


def test_unknown_characters_and_the_ids_of_others() -> None:
    spelling = Speller(Vocabulary(["b", "ab", "영"]))(*pack(["ab영".encode(), b"b", "화b".encode()]))
    assert spelling.ids.tolist() == [1, 2, 4, 2, 1, 2]  # "ab" is not a character
    assert spelling.starts.tolist() == [0, 3, 4, 6]


@pytest.mark.parametrize(
    ("text", "expected"),
    [("a good film", False), ("정말 재미있는 영화", True), ("很好看的电影", True), ("とても面白い", True),
     ("ดีมาก", True), ("хороший фильм", False), ("영화 good film", False), ("", False)],
)  # fmt: skip
def test_scripts_that_are_read_by_character(text: str, expected: bool) -> None:
    packed = pack([word.encode() for word in text.split()])
    assert is_read_by_character(count_characters(*packed, np.ones(len(text.split()), np.int64))) is expected


@pytest.fixture
def korean(tmp_path: Path) -> Path:
    file = tmp_path / "korean.jsonl"
    rows = [{"text": f"{text} {number}", "rating": 1 + 4 * (number % 2)} for number, text in enumerate(KOREAN)]
    file.write_text("".join(json.dumps(row) + "\n" for row in rows), "utf-8")
    return file


def characters_of(text: str, limit: int) -> list[str]:
    return list(text.replace(" ", ""))[:limit]


@pytest.mark.parametrize("workers", [1, 2])
def test_prepared_rows_are_characters_and_prediction_gives_the_same(korean: Path, tmp_path: Path, workers: int) -> None:
    data, limit = tmp_path / "data", 9
    settings = tenor.PrepareSettings(max_length=limit, workers=workers, valid_share=0.2)
    result = tenor.prepare([korean], data, settings)
    manifest, vocabulary = Manifest.load(data), Vocabulary.load(data / "vocab.json")
    assert manifest.tokeniser["units"] == "characters" and all(len(word) == 1 for word in vocabulary.words)
    found, encoder = [], Encoder(vocabulary, manifest.tokeniser, limit)
    for name in ("train", "valid", "test"):
        with open_split(data, name) as split:
            tokens, lengths = split.gather(np.arange(len(split)))
            assert manifest.splits[name].tokens == len(tokens)
        for row in np.split(tokens, np.cumsum(lengths)[:-1]) if len(lengths) else ():
            found.append("".join(vocabulary.words[token - 2] if token > 1 else "�" for token in row))
    texts = [f"{text} {number}" for number, text in enumerate(KOREAN)]
    known = set(vocabulary.words)
    expected = ["".join(c if c in known else "�" for c in characters_of(text, limit)) for text in texts]
    assert sorted(found) == sorted(expected)
    assert result.tokens == sum(map(len, expected))
    tokens, lengths = encoder(texts)
    again = [
        "".join(vocabulary.words[t - 2] if t > 1 else "�" for t in row)
        for row in np.split(tokens, np.cumsum(lengths)[:-1])
    ]
    assert again == expected


def test_a_table_of_words_that_grew_too_large_starts_anew(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(encode, "MOST_WORDS", 3)
    tokeniser = {"clean": "words", "marks": True, "stopwords": ["und"], "units": "characters"}
    encoder = Encoder(Vocabulary(list("abcdefgh")), tokeniser, 100)
    for texts in (["ab und cd", ""], ["ef gh ab cd ef"], ["a b c d e f und"], ["ab"]):
        tokens, lengths = encoder(texts)
        wanted = [text.replace("und", "").replace(" ", "") for text in texts]
        assert tokens.tolist() == [ord(c) - 95 for c in "".join(wanted)] and lengths.tolist() == list(map(len, wanted))


def test_the_units_can_be_chosen_and_belong_to_the_vocabulary(korean: Path, tmp_path: Path) -> None:
    words = tenor.prepare([korean], tmp_path / "words", tenor.PrepareSettings(tokens="words", workers=1))
    assert "영화" in Vocabulary.load(tmp_path / "words" / "vocab.json").words and words.tokens < 300
    tenor.prepare([korean], tmp_path / "characters", workers=1)
    borrowed = tenor.PrepareSettings(vocab=str(tmp_path / "characters"), workers=1)
    tenor.prepare([korean], tmp_path / "borrowed", borrowed)
    assert Manifest.load(tmp_path / "borrowed").tokeniser["units"] == "characters"
    with pytest.raises(UsageError, match="another tokeniser"):
        tenor.prepare(
            [korean], tmp_path / "no", tenor.PrepareSettings(vocab=str(tmp_path / "characters"), tokens="words")
        )
