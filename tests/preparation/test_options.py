"""The options that change which rows and words are kept."""

from __future__ import annotations

import unicodedata
from pathlib import Path

import numpy as np
import pytest
from helpers.command import call_tenor
from helpers.corpora import Review, make_reviews, write_json_lines
from preparation.reference import reference_tokens

from tenor.corpus.labels import make_rule
from tenor.errors import StoreError, UsageError
from tenor.preparation.job.prepare import prepare
from tenor.preparation.job.stages.dedupe import assign_splits
from tenor.preparation.settings import PrepareSettings
from tenor.preparation.tokeniser.characters import characters
from tenor.preparation.tokeniser.stopwords import read_stopwords
from tenor.preparation.tokeniser.vocabulary import Vocabulary, borrow
from tenor.store.manifest import Manifest

REVIEWS = [*make_reviews(200), *[Review(f"Not good at all! 10/10 n{n}", 1) for n in range(50)]]


def _words(tmp_path: Path, name: str, **options: object) -> set[str]:
    path = write_json_lines(tmp_path / "r.jsonl", REVIEWS)
    prepare([path], tmp_path / name, PrepareSettings(workers=1, **options))  # type: ignore[arg-type]
    return set(Vocabulary.load(tmp_path / name / "vocab.json").words)


def test_negation_and_marks_stay_unless_told_otherwise(tmp_path: Path) -> None:
    assert {"not", "!", "10"} <= _words(tmp_path, "default")
    assert "!" not in _words(tmp_path, "no marks", marks=False)
    letters = _words(tmp_path, "letters", clean="letters")
    assert "not" in letters and not {"!", "10"} & letters
    without = _words(tmp_path, "stop", stopwords="english")
    assert "good" in without and not {"not", "the", "all"} & without
    (tmp_path / "list.txt").write_text("Good\nBAD\n")
    assert "good" not in _words(tmp_path, "own", stopwords=str(tmp_path / "list.txt"))


def test_stop_words_are_spelt_as_the_tokeniser_spells_words(tmp_path: Path) -> None:
    (tmp_path / "list.txt").write_text("ΟΔΟΣ İYİ don’t Cafe\u0301\n")
    words = read_stopwords(str(tmp_path / "list.txt"))
    assert set(words) == {word for text in ("ΟΔΟΣ", "İYİ", "don’t", "Café") for word in reference_tokens(text)}


def test_stars_keep_five_classes(tmp_path: Path) -> None:
    path = write_json_lines(tmp_path / "r.jsonl", [Review(f"{'abcde'[n % 5]} text{n}", 1 + n % 5) for n in range(200)])
    result = prepare([path], tmp_path / "out", PrepareSettings(workers=1, labels="stars"))
    assert result.classes == ("1", "2", "3", "4", "5") and result.rows_kept == 200


def test_a_vocabulary_of_a_damaged_run_is_refused(tmp_path: Path) -> None:
    (tmp_path / "run").mkdir()
    (tmp_path / "run" / "config.json").write_text('{"tokeniser": 2}')
    with pytest.raises(StoreError, match="'tokeniser' is not a JSON object"):
        borrow(str(tmp_path / "run"), {})


def test_a_borrowed_vocabulary(tmp_path: Path) -> None:
    words = _words(tmp_path, "first", vocab_size=50)
    assert _words(tmp_path, "second", vocab=str(tmp_path / "first"), test_share=0.3) == words
    first, second = Manifest.load(tmp_path / "first"), Manifest.load(tmp_path / "second")
    assert first.vocab_sha256 == second.vocab_sha256 and first.vocab_size == 50
    with pytest.raises(UsageError, match="vocab names a file or folder that does not exist"):
        _words(tmp_path, "nothing", vocab=str(tmp_path / "nowhere"))
    with pytest.raises(UsageError, match="another tokeniser"):
        _words(tmp_path, "third", vocab=str(tmp_path / "first"), marks=False)


@pytest.mark.parametrize("rating", ["NaN", "1e999", "-inf", "１", "", "x" * 65])
def test_what_is_no_rating_among_words(rating: str) -> None:
    assert not make_rule("binary", "neg", "pos").accepts(rating)


@pytest.mark.parametrize(
    ("negative", "positive", "ratings"),
    [
        ("0", "1", {"0": 0, "1": 1, "2": -1}),
        ("neg", "pos", {"neg": 0, "pos": 1, "meh": -1}),
        ("1,2,3", "4,5", {"3": 0}),
        ("nan", "inf", {"nan": 0, "inf": 1}),
    ],
)
def test_label_rules(negative: str, positive: str, ratings: dict[str, int]) -> None:
    rule = make_rule("binary", negative, positive)
    assert {rating: rule.label(rating) for rating in ratings} == ratings
    assert all(rule.accepts(rating) for rating in ratings)
    with pytest.raises(UsageError, match="both negative and positive"):
        make_rule("binary", "1", "1,2")


@pytest.mark.parametrize("seed", [-1, 1 << 64])
def test_a_split_seed_that_has_no_64_bits_is_refused(seed: int) -> None:
    with pytest.raises(UsageError, match=r"split_seed cannot be .*; give a whole number from 0"):
        PrepareSettings(split_seed=seed)


@pytest.mark.parametrize("seed", [0, (1 << 64) - 1])
def test_any_seed_of_64_bits_splits_by_the_shares(seed: int) -> None:
    hashes = np.arange(10_000, dtype=np.uint64)
    counts = np.bincount(assign_splits(hashes, 0.1, 0.2, PrepareSettings(split_seed=seed).split_seed), minlength=3)
    assert np.allclose(counts / 10_000, [0.7, 0.1, 0.2], atol=0.02)


def test_the_pinned_tables_agree_with_unicode() -> None:
    """Where this Python knows a character, it is the letter, digit or lower case that the pinned table says."""
    tables = characters()
    for code in range(0x110000):
        if unicodedata.category(chr(code)) in ("Cs", "Cn") or code in (0x130, 0x2019):
            continue
        lower = chr(code).lower()
        assert tables.lower[code] == ord(lower) if len(lower) == 1 else True
        if tables.plain_kinds[code] == 1:
            assert unicodedata.category(chr(code))[0] in "LMN"


def test_the_command(tmp_path: Path) -> None:
    path = write_json_lines(tmp_path / "r.jsonl", REVIEWS)
    result = call_tenor("prepare", path, "--out", tmp_path / "out", "--workers", "1", "--json").ok().json
    wanted = "rows_read rows_kept duplicates dropped rejected tokens vocab_size splits seconds mb_per_s".split()  # noqa: SIM905
    assert set(wanted) <= set(result)
    assert call_tenor("prepare", "--check", tmp_path / "out", "--json").ok().json["shards"] == 3
    (tmp_path / "out" / "test" / "00000.h5").write_bytes(b"damaged")
    assert "test/00000.h5" in call_tenor("prepare", "--check", tmp_path / "out").failed(1)
    assert "--out" in call_tenor("prepare", path).failed(2)
    made = call_tenor("generate", tmp_path / "g.jsonl", "--rows", "100", "--json").ok().json
    assert made["rows"] == 100 and made["bayes_accuracy"] == 0.95


def test_beside_booleans_nothing_else_is_a_rating() -> None:
    rule = make_rule("binary", "False", "true")
    assert [rule.label(rating) for rating in ("false", "true")] == [0, 1]
    assert not any(rule.accepts(rating) for rating in ("1", "5", "maybe", ""))
    assert not make_rule("binary", "1,2", "4,5").accepts("true")
