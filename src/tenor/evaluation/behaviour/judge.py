"""How many behaviour tests a model passes, by kind. Pure functions from answers to counts."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

from tenor.evaluation.behaviour.cases import INVARIANCE, MINIMUM, UP, Case

FORMAT = 1  # of behaviour.json
SURE = 0.95  # two probabilities beyond this one need not differ: there is no room left to rise or to fall


@dataclass(frozen=True)
class TextAnswer:
    """What a model says about one text: its label, and the probability of positive."""

    label: str
    probability: float


@dataclass(frozen=True)
class PassCount:
    """How many cases of a kind pass.

    Attributes:
        passed: Number of cases that pass.
        cases: Number of cases.
        hard: Whether the kind is left out of the overall share.
    """

    passed: int
    cases: int
    hard: bool = False


@dataclass(frozen=True)
class Behaviour:
    """The result of `tenor.check_behaviour`.

    Attributes:
        kinds: Passed cases of each kind.
        types: Passed cases of each type of test, without hard kinds.
        passed: Passed cases without hard kinds.
        cases: All cases without hard kinds.
        share: `passed` / `cases`.
        failed: The cases that fail: kind, type, expected, texts, and the labels and probabilities of positive that the
            model gives.
    """

    kinds: dict[str, PassCount]
    types: dict[str, PassCount]
    passed: int
    cases: int
    share: float
    failed: list[dict[str, Any]] = field(repr=False)

    def as_dict(self) -> dict[str, Any]:
        """Return the result as JSON values.

        >>> tenor.check_behaviour("run").as_dict()["kinds"]["negation"]  # doctest: +SKIP
        {'passed': 40, 'cases': 44, 'hard': False}
        """
        values = asdict(self)
        for count in values["types"].values():
            del count["hard"]
        return {"format": FORMAT, **values}


def passes(case: Case, answers: Sequence[TextAnswer]) -> bool:
    """Return whether a model that gives these answers to the texts of a case passes it."""
    if case.type == MINIMUM:
        return answers[0].label == case.expected
    first, changed = answers
    if case.type == INVARIANCE:
        return first.label == changed.label
    before, after = first.probability, changed.probability
    if case.expected != UP:
        before, after = 1 - before, 1 - after
    return after > before or min(before, after) >= SURE


def judge(cases: Sequence[Case], answers: Mapping[str, TextAnswer]) -> Behaviour:
    """Count the cases that pass.

    Args:
        cases: The cases; at least one of a kind that is not hard.
        answers: What the model says about each text of the cases.
    """
    given = [[answers[text] for text in case.texts] for case in cases]
    results = [passes(case, found) for case, found in zip(cases, given, strict=True)]
    fair = [passed for case, passed in zip(cases, results, strict=True) if not case.is_hard]
    return Behaviour(
        kinds=_count([case.kind for case in cases], cases, results),
        types=_count([None if case.is_hard else case.type for case in cases], cases, results),
        passed=sum(fair),
        cases=len(fair),
        share=sum(fair) / len(fair),
        failed=[_failure(case, found) for case, found, passed in zip(cases, given, results, strict=True) if not passed],
    )


def _count(names: Sequence[str | None], cases: Sequence[Case], results: Sequence[bool]) -> dict[str, PassCount]:
    counts: dict[str, PassCount] = {}
    for name, case, passed in zip(names, cases, results, strict=True):
        if name is not None:
            before = counts.get(name, PassCount(0, 0))
            counts[name] = PassCount(before.passed + passed, before.cases + 1, case.is_hard)
    return counts


def _failure(case: Case, answers: Sequence[TextAnswer]) -> dict[str, Any]:
    return {
        "kind": case.kind,
        "type": case.type,
        "expected": case.expected,
        "texts": list(case.texts),
        "labels": [answer.label for answer in answers],
        "probabilities": [answer.probability for answer in answers],
    }
