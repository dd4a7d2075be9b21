"""Patterns: how they are written, and that those of English negate what they say they negate."""

from __future__ import annotations

import itertools

import pytest

from tenor.training.tasks.negation.grammar import OPINIONS, TOPIC, Grammar, Pattern, grammar, parse

ENGLISH = grammar("english")
OTHER_NEGATIONS = (
    "far from",
    "anything but",
    "by no means",
    "in no way",
    "nowhere near",
    "hardly",
    "rarely",
    "zero",
    "at no",
)


def every(pattern: Pattern) -> list[str]:
    """All texts of a pattern."""
    chosen = itertools.product(*pattern)
    return [" ".join(word for part in parts for word in part) for parts in chosen]


def test_a_pattern_has_one_of_each_choice() -> None:
    assert every(parse("(it|the T) is (not very|) A")) == [
        "it is not very A",
        "it is A",
        "the T is not very A",
        "the T is A",
    ]


@pytest.mark.parametrize("name", ["flip", "keep", "plain"])
@pytest.mark.parametrize("kind", OPINIONS)
def test_every_sentence_has_words_of_its_own_kind_alone(name: str, kind: str) -> None:
    for pattern in getattr(ENGLISH, name)[kind]:
        for text in every(pattern):
            words = text.split()
            assert {word for word in words if word.isupper()} <= {kind, TOPIC}, text
            assert all(word == word.lower() or word in (kind, TOPIC) for word in words), text


@pytest.mark.parametrize("kind", OPINIONS)
def test_sentences_that_turn_an_opinion_around_negate(kind: str) -> None:
    for pattern in ENGLISH.flip[kind]:
        for text in every(pattern):
            assert kind in text.split(), text
            assert negates(ENGLISH, text), text


@pytest.mark.parametrize("kind", OPINIONS)
def test_plain_sentences_do_not_negate(kind: str) -> None:
    for pattern in ENGLISH.plain[kind]:
        assert not any(negates(ENGLISH, text) for text in every(pattern))


def negates(rules: Grammar, text: str) -> bool:
    words = text.replace("'m not", "not").split()
    return any(word in rules.negators for word in words) or any(phrase in text for phrase in OTHER_NEGATIONS)
