"""Phrases of made-up reviews whose complaints, synonyms and trends are known."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from insights.stored import store_texts

from tenor.insights.phrases.choosing import Phrase, contains, group, title
from tenor.insights.phrases.finding import Periods, PhraseFinder, PhraseInput, snippet
from tenor.insights.phrases.similar import WordContexts
from tenor.insights.phrases.words import BREAK, CONTENT, END, INNER, START, kinds_of, stem, stems_of
from tenor.insights.times import periods_of

THINGS = ["phone", "blender", "tablet", "charger", "radio", "lamp", "printer", "camera"]
PLAIN = ["table", "window", "garden", "kitchen", "monday", "summer", "winter", "box", "paper", "colour", "corner"]


def reviews(rows: int, seed: int) -> list[tuple[str, float, int]]:
    """(text, probability to be negative, day). In the last tenth of the days many batteries explode."""
    rng = random.Random(seed)
    made = []
    for row in range(rows):
        thing, plain = rng.choice(THINGS), rng.choices(PLAIN, k=6)
        day = row * 100 // rows
        is_bad = rng.random() < 0.4
        if is_bad:
            verb = rng.choice(["stopped", "quit", "stopped", "stops"])
            core = rng.choice([f"the {thing} {verb} working", "it was a waste of money", "it is not sturdy"])
        else:
            core = rng.choice([f"the {thing} is working great", "we love it", "this is easy to use"])
        if day >= 90 and rng.random() < 0.3:
            core += " battery explodes"
        made.append((" ".join([*plain[:3], core, *plain[3:], str(row)]), 0.9 if is_bad else 0.1, day))
    return made


@pytest.fixture(scope="module")
def found(tmp_path_factory: pytest.TempPathFactory) -> dict[str, list[dict[str, Any]]]:
    made = reviews(3000, seed=0)
    store, vocabulary = store_texts(
        tmp_path_factory.mktemp("rows"),
        [text for text, _, _ in made],
        negative=[low for _, low, _ in made],
        days=[day for _, _, day in made],
    )
    numbers, names = periods_of(store.days // 10, "day")
    try:
        given = PhraseInput(store, vocabulary.words, None, Periods(numbers, names), np.zeros(len(store), np.bool_))
        return PhraseFinder(given, 10).find()
    finally:
        store.close()


def test_complaints_are_found_grouped_and_in_order(found: dict[str, list[dict[str, Any]]]) -> None:
    made = reviews(3000, seed=0)
    lists = {side: [row["phrase"] for row in found[side]] for side in ("negative", "positive")}
    assert set(lists["negative"][:3]) == {"waste of money", "stopped working", "not sturdy"}
    assert {"working great", "love", "easy to use"} == set(lists["positive"][:3])
    stopped = next(row for row in found["negative"] if row["phrase"] == "stopped working")
    assert {"quit working", "stops working"} <= {variant["phrase"] for variant in stopped["variants"]}
    assert stopped["rows"] == sum("working" in text and "great" not in text for text, _, _ in made)  # each review once
    assert stopped["negative_share"] == pytest.approx(0.9)
    assert [row["score"] for row in found["negative"]] == sorted((r["score"] for r in found["negative"]), reverse=True)


def test_examples_contain_the_phrase_and_name_their_place(found: dict[str, list[dict[str, Any]]]) -> None:
    made = reviews(3000, seed=0)
    for row in found["negative"][:3]:
        assert len(row["examples"]) == 3
        for example in row["examples"]:
            assert example["text"] == made[example["line"] - 1][0] and example["file"] == "reviews.txt"
    assert all(
        "waste of money" in e["text"]
        for r in found["negative"]
        if r["phrase"] == "waste of money"
        for e in r["examples"]
    )


def test_only_the_planted_phrase_rises(found: dict[str, list[dict[str, Any]]]) -> None:
    assert [row["phrase"] for row in found["rising"]] == ["battery explodes"]
    row = found["rising"][0]
    made = reviews(3000, seed=0)
    recent = [text for text, _, day in made if day >= 90]
    assert row["rows_recent"] == sum("battery" in text for text in recent)
    assert row["share_recent"] == pytest.approx(row["rows_recent"] / len(recent)) and row["share_before"] == 0


def test_copies_do_not_count(tmp_path: Path) -> None:
    texts = ["this kettle leaks water everywhere on monday"] * 30 + [f"we love the garden {row}" for row in range(300)]
    negative = [0.95] * 30 + [0.05] * 300
    store, vocabulary = store_texts(tmp_path, texts, negative=negative)
    copies = np.array([0 < row < 30 for row in range(330)])
    nothing = Periods(np.full(330, -1, np.int32), [])
    try:
        once = PhraseFinder(PhraseInput(store, vocabulary.words, None, nothing, copies), 10).find()
        every = PhraseFinder(PhraseInput(store, vocabulary.words, None, nothing, np.zeros(330, np.bool_)), 10).find()
    finally:
        store.close()
    assert once["negative"] == [] and every["negative"][0]["rows"] == 30


@pytest.mark.parametrize(
    ("words", "same"),
    [
        (("stopped", "stops", "stopping", "stop"), True),
        (("disappointed", "disappointing", "disappointment"), True),
        (("returned", "returns", "returning"), True),
        (("broke", "broken", "breaks"), True),
        (("not", "never", "doesn't", "didnt"), True),
        (("work", "worth"), False),
        (("price", "prize"), False),
        (("pass", "pas"), False),
    ],
)
def test_stems(words: tuple[str, ...], same: bool) -> None:
    assert (len({stem(word) for word in words}) == 1) == same


def test_a_negated_word_does_not_begin_a_phrase() -> None:
    words = ["not", "work", "¬work", "¬the", "¬off", "¬not", "¬!"]
    assert kinds_of(words)[2:].tolist() == [START, CONTENT, END, INNER, END, INNER, BREAK]


def test_stems_of_a_phrase_leave_out_function_words() -> None:
    assert stems_of(["waste", "of", "my", "money"]) == ("wast", "money")
    assert stems_of(["didn't", "work"]) == ("not", "work")


def phrase(text: str, rows: int, number: int = 0) -> Phrase:
    words = tuple(text.split())
    return Phrase(number, tuple(range(2, 2 + len(words))), words, text, rows, 1.0, stems_of(words))


def test_groups_join_what_says_the_same_and_nothing_else() -> None:
    texts = ["waste of money", "waste", "not work", "doesn't work", "not fit", "waste product", "poor quality"]
    groups = group([phrase(text, 100 - place) for place, text in enumerate(texts)], lambda one, other: 0.0)
    assert [[member.text for member in members] for members in groups] == [
        ["waste of money", "waste", "waste product"],
        ["not work", "doesn't work"],
        ["not fit"],
        ["poor quality"],
    ]


def test_similar_words_join_phrases_only_beside_a_common_word() -> None:
    given = [phrase("stopped working", 9), phrase("quit working", 8), phrase("not buy", 7), phrase("not fit", 6)]
    groups = group(given, lambda one, other: 1.0)
    assert [[member.text for member in members] for members in groups] == [
        ["stopped working", "quit working"],
        ["not buy"],
        ["not fit"],
    ]


def test_the_title_of_a_group_is_telling() -> None:
    assert title([phrase("waste", 100), phrase("waste of money", 60)]).text == "waste of money"
    assert title([phrase("waste", 100), phrase("waste of money", 10)]).text == "waste"


def test_words_with_the_same_neighbours_are_similar() -> None:
    rng = random.Random(0)
    rows = []
    for _ in range(400):
        rows.append([5, rng.choice([10, 11]), 6, rng.choice([20, 21, 22])])  # 10 and 11 stand between 5 and 6
        rows.append([7, 12, 8, rng.choice([20, 21, 22])])
    tokens = np.array([token for row in rows for token in row], np.int32)
    contexts = WordContexts([10, 11, 12], 30)
    contexts.count([(tokens, np.cumsum([len(row) for row in rows]))])
    assert contexts.similarity(10, 11) > 0.9
    assert contexts.similarity(10, 12) < 0.2


def test_contains() -> None:
    assert contains("abcd", "bc") and not contains("abcd", "bd") and not contains("a", "ab")


def test_snippets_show_the_phrase() -> None:
    text = "start " + "many words " * 50 + "then it Stopped, working at once " + "and more " * 50
    assert "Stopped, working" in snippet(text, [["stopped", "working"]])
    assert snippet("short", [["absent"]]) == "short"
    assert len(snippet(text, [["absent"]])) < 300
