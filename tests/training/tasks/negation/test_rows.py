"""Rows that show what negation does: whose words they have, which label, and where there are none."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from helpers.opinions import BAD, GOOD, ListedRows, planted
from helpers.training import SMALL, run
from preparation.reference import reference_negated

import tenor
from tenor.preparation.tokeniser.vocabulary import FIRST_WORD
from tenor.store.manifest import Manifest
from tenor.training.tasks.negation import rows as writing
from tenor.training.tasks.negation.contexts import Contexts, count
from tenor.training.tasks.negation.grammar import grammar
from tenor.training.tasks.negation.lexicon import log_ratios
from tenor.training.tasks.negation.rows import AddedRows, WithRows, make_lexicon, make_rows
from tenor.training.tasks.reviews import Reviews

ENGLISH = grammar("english")


def words_of_patterns() -> set[str]:
    by_kind = [
        pattern for found in (ENGLISH.flip, ENGLISH.keep, ENGLISH.plain) for ps in found.values() for pattern in ps
    ]
    patterns = (*by_kind, *ENGLISH.before, *ENGLISH.after)
    return {word for pattern in patterns for choice in pattern for part in choice for word in part if word.islower()}


def listed(texts: list[str], labels: list[int]) -> tuple[ListedRows, list[str]]:
    """The texts as rows of ids, and the words of these ids."""
    words = sorted({word for text in texts for word in text.split()} | words_of_patterns())
    ids = {word: place for place, word in enumerate(words, FIRST_WORD)}
    return ListedRows([[ids[word] for word in text.split()] for text in texts], np.array(labels, np.uint8)), words


@pytest.fixture(scope="module")
def opinions() -> tuple[ListedRows, list[str]]:
    return listed(*planted(1500))


def texts_of(added: AddedRows, words: list[str]) -> list[list[str]]:
    bounds = zip(added.starts[:-1], added.starts[1:], strict=True)
    return [[words[token - FIRST_WORD] for token in added.tokens[first:last]] for first, last in bounds]


def test_words_are_counted_inside_and_outside_the_scope_of_a_negator() -> None:
    texts = ["not a very good lamp but good", "good", "no good lamp never", "good is bare"]
    rows, words = listed(texts, [1, 0, 1, 0])
    ids = {word: place for place, word in enumerate(words, FIRST_WORD)}
    flags = np.isin(np.arange(len(words) + FIRST_WORD), [ids["not"], ids["no"], ids["never"]])
    after = np.arange(len(words) + FIRST_WORD) == ids["very"]
    found: Contexts = count(rows, len(words) + FIRST_WORD, flags, {"A": after})  # type: ignore[arg-type]
    assert found.bare[:, ids["good"]].tolist() == [2, 1]
    assert found.negated[:, ids["good"]].tolist() == [0, 2]
    assert found.negated[:, ids["lamp"]].tolist() == [0, 1]  # the fourth word after `not` is outside
    assert found.after["A"].nonzero()[0].tolist() == [ids["good"]]
    total = Counter(word for text in texts for word in text.split())
    assert {word: int(found.total[ids[word]]) for word in total} == total


def test_log_ratios_are_those_of_naive_bayes() -> None:
    ratios, _ = log_ratios(np.array([[3, 0], [1, 4]]))
    assert ratios == pytest.approx([np.log((2 / 6) / (4 / 4)), np.log((5 / 6) / (1 / 4))])


def test_words_speak_for_the_class_they_were_planted_for(opinions: tuple[ListedRows, list[str]]) -> None:
    rows, words = opinions
    lexicon = make_lexicon(rows, words, ENGLISH)  # type: ignore[arg-type]
    assert lexicon.turns
    for side, (same, other) in enumerate([(BAD, GOOD), (GOOD, BAD)]):
        assert {words[i - FIRST_WORD] for i in lexicon.bare["A", side].ids} == set(same)
        assert {words[i - FIRST_WORD] for i in lexicon.negated["A", side].ids} == set(other)


@pytest.mark.parametrize("flipped", [0.0, 1.0])
def test_the_label_of_a_sentence_is_that_of_its_words_or_the_other_one(
    flipped: float, opinions: tuple[ListedRows, list[str]], monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, value in {"FLIPPED": flipped, "SECOND": 0.0, "FRAGMENT": 0.0}.items():
        monkeypatch.setattr(writing, name, value)
    added = make_rows(*opinions, share=0.2, seed=3)  # type: ignore[arg-type]
    assert len(added) == 300 and added.labels.tolist() == [0, 1] * 150
    for text, label in zip(texts_of(added, opinions[1]), added.labels.tolist(), strict=True):
        side = label if flipped == 0.0 else 1 - label
        assert set(text) & {*GOOD, *BAD} <= set((BAD, GOOD)[side])
        assert set(text) & {*GOOD, *BAD}


def test_rows_follow_from_the_seed(opinions: tuple[ListedRows, list[str]]) -> None:
    first, again, other = (make_rows(*opinions, share=0.1, seed=seed) for seed in (1, 1, 2))  # type: ignore[arg-type]
    assert first.tokens.tolist() == again.tokens.tolist() != other.tokens.tolist()


def test_rows_are_read_as_the_tokeniser_reads_them(opinions: tuple[ListedRows, list[str]]) -> None:
    rows, words = opinions
    marked = [*words, *(f"¬{word}" for word in words)]
    ids = {word: place for place, word in enumerate(marked, FIRST_WORD)}
    texts = [
        reference_negated([words[i - FIRST_WORD] for i in rows.gather(np.array([r]))[0]]) for r in range(len(rows))
    ]
    assert any("¬" in word for text in texts for word in text)
    negated_rows = ListedRows([[ids[word] for word in text] for text in texts], rows.labels)
    plain = texts_of(make_rows(*opinions, share=0.1, seed=3), words)  # type: ignore[arg-type]
    found = texts_of(make_rows(negated_rows, marked, share=0.1, seed=3), marked)  # type: ignore[arg-type]
    assert found == [reference_negated(text) for text in plain] != plain


def test_there_are_none_where_negators_turn_nothing() -> None:
    rows, words = listed(*planted(1500, turns=False))
    assert not make_lexicon(rows, words, ENGLISH).turns
    assert len(make_rows(rows, words, share=0.1, seed=0)) == 0  # type: ignore[arg-type]


def test_there_are_none_without_negators() -> None:
    texts, labels = planted(600)
    assert len(make_rows(*listed([text.replace("not ", "") for text in texts], labels), 0.1, 0)) == 0  # type: ignore[arg-type]


def test_added_rows_follow_those_that_were_read() -> None:
    rows = ListedRows([[5, 6, 7], [], [8]], np.array([0, 1, 1], np.uint8))
    added = AddedRows(np.array([9, 10, 11], np.int32), np.array([0, 1, 3]), np.array([1, 0], np.uint8))
    both, every = WithRows(rows, added), [[5, 6, 7], [], [8], [9], [10, 11]]  # type: ignore[arg-type]
    assert both.labels.tolist() == [0, 1, 1, 1, 0] and len(both) == 5
    for order in ([0, 1, 2, 3, 4], [4, 0, 3, 1], [3], [2, 4, 4], []):
        tokens, lengths = both.gather(np.array(order, np.int64))
        assert tokens.tolist() == [token for row in order for token in every[row]]
        assert lengths.tolist() == [len(every[row]) for row in order]


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("opinions")
    texts, labels = planted(900)
    (folder / "raw.csv").write_text("text,label\n" + "".join(f"{t},{n}\n" for t, n in zip(texts, labels, strict=True)))
    settings = tenor.PrepareSettings(negative="0", positive="1", workers=1)
    tenor.prepare([folder / "raw.csv"], folder / "data", settings)
    return folder / "data"


def test_a_run_counts_added_rows_apart_and_n_grams_keep_their_importance(data: Path, tmp_path: Path) -> None:
    read = Manifest.load(data).splits["train"].rows
    result = run(data, tmp_path / "run", model="wide", negation_rows=0.1, max_steps=2)
    assert (result["train_rows"], result["added_rows"]) == (read, round(0.1 * read))
    with_rows, without = (Reviews(data, replace(SMALL, negation_rows=share)) for share in (0.1, 0.0))
    try:
        assert with_rows.order.num_rows == read + with_rows.num_added
        known = without.batches.importance > 0
        assert (with_rows.batches.importance[known] == without.batches.importance[known]).all()
        assert (with_rows.batches.importance > 0).sum() >= known.sum()
    finally:
        with_rows.close()
        without.close()
