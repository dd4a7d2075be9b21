"""Behaviour tests on a run: counts by an independent loop, the stored file, the command, stars, and other classes."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from helpers.command import call_tenor, run_tenor

import tenor
from tenor.cli.summaries import behaviour_table
from tenor.errors import RunError
from tenor.evaluation.behaviour.cases import read_cases
from tenor.prediction.behaviour import answer, positive_of_stars


def test_counts_agree_with_a_loop_over_predictions(make_run: Any) -> None:
    run = make_run()
    model, found = tenor.load(run), tenor.check_behaviour(run)
    texts = list(dict.fromkeys(text for case in read_cases() for text in case.texts))
    label_of = {text: each.label for text, each in zip(texts, model.predict(texts), strict=True)}
    chance_of = dict(zip(texts, model.probabilities(texts)[:, 1].tolist(), strict=True))
    passed: Counter[str] = Counter()
    for case in read_cases():
        labels, chances = [label_of[text] for text in case.texts], [chance_of[text] for text in case.texts]
        if case.type == "minimum":
            passed[case.kind] += labels == [case.expected]
        elif case.type == "invariance":
            passed[case.kind] += labels[0] == labels[1]
        elif case.expected == "up":
            passed[case.kind] += chances[1] > chances[0] or min(chances) >= 0.95
        else:
            passed[case.kind] += chances[1] < chances[0] or max(chances) <= 0.05
    assert {kind: count.passed for kind, count in found.kinds.items()} == passed
    assert found.cases == sum(count.cases for kind, count in found.kinds.items() if kind != "sarcasm")
    assert len(found.failed) == sum(count.cases - count.passed for count in found.kinds.values())


def test_the_command_prints_each_kind_and_stores_the_result(make_run: Any) -> None:
    run = make_run()
    done = call_tenor("evaluate", run, "--behaviour", "--json").ok()
    stored = json.loads((run / "behaviour.json").read_text("utf-8"))
    assert done.json == stored
    assert set(stored) >= {"format", "kinds", "failed", "passed", "cases", "share"}
    words = behaviour_table(stored).splitlines()
    negation = stored["kinds"]["negation"]
    assert words[2].split() == [
        "negation",
        str(negation["passed"]),
        str(negation["cases"]),
        f"{100 * negation['passed'] / negation['cases']:.1f}",
    ]
    assert any(line.startswith("sarcasm (hard)") for line in words)
    assert words[-1].startswith("all but hard") and words[-1].endswith(f"{100 * stored['share']:.1f}")


def test_data_and_behaviour_together(make_run: Any, data: Path) -> None:
    found = call_tenor("evaluate", make_run(), data, "--behaviour", "--json").ok().json
    assert {"accuracy", "rows", "kinds", "failed"} <= set(found)


def test_neither_data_nor_behaviour_is_wrong_usage(run: Path) -> None:
    done = run_tenor("evaluate", run)
    assert done.code == 2 and "give DATA, --behaviour or both" in done.stderr


class Fake:
    """A model that gives every text the same probabilities."""

    def __init__(self, classes: tuple[str, ...], chances: list[float]) -> None:
        self.classes, self.chances = classes, chances

    def predict(self, texts: list[str]) -> list[tenor.Prediction]:
        best = int(np.argmax(self.chances))
        return [tenor.Prediction(self.classes[best], self.chances[best], index) for index, _ in enumerate(texts)]

    def probabilities(self, texts: list[str]) -> np.ndarray:
        return np.array([self.chances] * len(texts), np.float32)


def test_stars_become_positive_or_negative() -> None:
    table = np.array([[0.1, 0.1, 0.5, 0.2, 0.1], [0, 0, 1, 0, 0], [0.5, 0, 0.5, 0, 0], [0, 0.1, 0, 0, 0.9]], np.float32)
    assert positive_of_stars(table).tolist() == pytest.approx([0.6, 0.5, 0.0, 0.9])
    model: Any = Fake(("1", "2", "3", "4", "5"), [0.1, 0.1, 0.5, 0.2, 0.1])
    answers, unknown = answer(model, ["a", "b"], "run")
    assert [found.label for found in answers] == ["positive", "positive"] and unknown == 1
    assert answers[0].probability == pytest.approx(0.6)


def test_other_classes_are_refused() -> None:
    model: Any = Fake(("dull", "fine", "great"), [0.1, 0.2, 0.7])
    with pytest.raises(RunError, match=r"run: has the classes dull, fine, great, .* or stars; give a run"):
        answer(model, ["a"], "run")
