"""Which answers pass which case, and the counts by kind, against tables written by hand."""

from __future__ import annotations

import pytest

from tenor.evaluation.behaviour.cases import Case
from tenor.evaluation.behaviour.judge import TextAnswer, judge, passes


def case(kind: str, name: str, expected: str, *texts: str, hard: bool = False) -> Case:
    return Case(kind, name, expected, texts, hard)


@pytest.mark.parametrize(
    ("name", "expected", "labels", "chances", "is_right"),
    [
        ("minimum", "positive", ["positive"], [0.51], True),
        ("minimum", "positive", ["negative"], [0.6], False),  # the label counts, whatever the threshold
        ("minimum", "negative", ["negative"], [0.1], True),
        ("minimum", "negative", ["unsure"], [0.1], False),
        ("invariance", "same", ["positive", "positive"], [0.99, 0.6], True),
        ("invariance", "same", ["negative", "negative"], [0.1, 0.4], True),
        ("invariance", "same", ["positive", "negative"], [0.51, 0.49], False),
        ("direction", "up", ["negative", "negative"], [0.1, 0.2], True),
        ("direction", "up", ["negative", "negative"], [0.2, 0.2], False),  # no reaction
        ("direction", "up", ["positive", "positive"], [0.9, 0.8], False),
        ("direction", "up", ["positive", "positive"], [0.99, 0.96], True),  # both are sure
        ("direction", "up", ["negative", "negative"], [0.03, 0.01], False),  # sure of the wrong side
        ("direction", "down", ["positive", "positive"], [0.9, 0.8], True),
        ("direction", "down", ["positive", "positive"], [0.8, 0.9], False),
        ("direction", "down", ["negative", "negative"], [0.01, 0.04], True),
        ("direction", "down", ["positive", "positive"], [0.98, 0.99], False),
    ],
)
def test_what_passes(name: str, expected: str, labels: list[str], chances: list[float], is_right: bool) -> None:
    answers = [TextAnswer(label, chance) for label, chance in zip(labels, chances, strict=True)]
    assert passes(case("a", name, expected, *("x" * len(answers))), answers) is is_right


def test_counts_by_kind_and_type_leave_hard_kinds_out_of_the_total() -> None:
    answers = {
        "good": TextAnswer("positive", 0.9),
        "bad": TextAnswer("negative", 0.2),
        "odd": TextAnswer("positive", 0.7),
    }
    cases = [
        case("plain", "minimum", "positive", "good"),
        case("plain", "minimum", "negative", "bad"),
        case("plain", "direction", "up", "good", "odd"),
        case("names", "invariance", "same", "good", "bad"),
        case("sarcasm", "minimum", "negative", "odd", hard=True),
        case("sarcasm", "minimum", "negative", "bad", hard=True),
    ]
    found = judge(cases, answers).as_dict()
    assert found["kinds"] == {
        "plain": {"passed": 2, "cases": 3, "hard": False},
        "names": {"passed": 0, "cases": 1, "hard": False},
        "sarcasm": {"passed": 1, "cases": 2, "hard": True},
    }
    assert found["types"] == {
        "minimum": {"passed": 2, "cases": 2},
        "direction": {"passed": 0, "cases": 1},
        "invariance": {"passed": 0, "cases": 1},
    }
    assert (found["passed"], found["cases"], found["share"]) == (2, 4, 0.5)
    assert [failure["texts"] for failure in found["failed"]] == [["good", "odd"], ["good", "bad"], ["odd"]]
    assert found["failed"][0] == {
        "kind": "plain",
        "type": "direction",
        "expected": "up",
        "texts": ["good", "odd"],
        "labels": ["positive", "positive"],
        "probabilities": [0.9, 0.7],
    }
