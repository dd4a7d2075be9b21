"""The written cases: enough of them, of every kind and type, and a wrong case is refused."""

from __future__ import annotations

import tomllib
from collections import Counter
from importlib import resources

import pytest

from tenor.errors import CorpusError
from tenor.evaluation.behaviour.cases import parse_cases, read_cases

KINDS = {
    "negation",
    "negated criticism",
    "double negation",
    "contrast",
    "intensity",
    "sarcasm",
    "questions",
    "mixed",
    "very short",
    "shouting",
    "emoji",
    "typos",
    "names",
    "other letters",
}


def test_there_are_enough_cases_of_every_kind_and_type() -> None:
    cases = read_cases()
    assert len(cases) >= 360
    by_kind = Counter(case.kind for case in cases)
    assert set(by_kind) == KINDS and min(by_kind.values()) >= 24
    assert min(Counter(case.type for case in cases).values()) >= 50
    assert {case.kind for case in cases if case.is_hard} == {"sarcasm"}
    minimum = Counter(case.expected for case in cases if case.type == "minimum")
    assert 0.4 < minimum["positive"] / minimum.total() < 0.6  # no label is right by default
    directions = Counter(case.expected for case in cases if case.type == "direction")
    assert 0.4 < directions["up"] / directions.total() < 0.6


def test_no_case_is_lost_or_changed() -> None:
    tables = tomllib.loads(resources.files("tenor.evaluation.behaviour").joinpath("cases.toml").read_text("utf-8"))
    rows = [
        (kind, name, row)
        for kind, table in tables.items()
        for name, rows in table.items()
        if name != "hard"
        for row in rows
    ]
    cases = read_cases()
    assert len(cases) == len(rows)
    written = {(kind, name, *row) for kind, name, row in rows}
    read = {
        (case.kind, case.type, *([] if case.type == "invariance" else [case.expected]), *case.texts) for case in cases
    }
    assert read == written


def test_texts_are_tidy_and_changed_texts_differ() -> None:
    for case in read_cases():
        assert all(text == text.strip() and "  " not in text for text in case.texts), case
        assert len(set(case.texts)) == len(case.texts), case


@pytest.mark.parametrize(
    "toml",
    [
        '[a]\nminimum = [["neutral", "fine"]]',
        '[a]\nminimum = [["positive", "fine", "good"]]',
        "[a]\nminimum = [[]]",
        '[a]\nminimum = [["positive", " "]]',
        '[a]\nminimum = [["positive", 3]]',
        '[a]\ninvariance = [["fine"]]',
        '[a]\ndirection = [["positive", "fine", "good"]]',
        '[a]\ndirections = [["up", "fine", "good"]]',
        '[a]\nminimum = [["positive", "fine"], ["negative", "fine"]]',
    ],
)
def test_a_wrong_case_is_refused_with_its_kind(toml: str) -> None:
    with pytest.raises(CorpusError, match=r"cases.toml: \[a\] .*; correct the case"):
        parse_cases(toml)
