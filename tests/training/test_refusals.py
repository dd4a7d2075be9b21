"""Options that the chosen model would ignore are refused, with what makes them useless and what to do."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from helpers.training import SMALL

import tenor
from tenor.errors import UsageError
from tenor.training.launching.compare import compare
from tenor.training.recipe import DataFacts, complete
from tenor.training.refusals import OF_DEEP, OF_REVIEWS, OF_WIDE, refuse_without_effect
from tenor.training.settings import TrainSettings
from tenor.training.traits import TASKS

FACTS = DataFacts(rows=50_000, tokens=4_000_000)


def check(**options: Any) -> None:
    asked = TrainSettings(**options)
    facts = FACTS if asked.task == "reviews" else None
    refuse_without_effect(asked, complete(asked, facts), set(options))


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (
            {"model": "wide", "embeddings": "v"},
            "embeddings v has no effect with model wide, a model without a deep part; use model wide-deep, or omit emb",
        ),
        (
            {"preset": "fast", "freeze_embeddings": 1},
            "freeze_embeddings 1 has no effect with preset fast, a model without a deep part; add model wide-deep",
        ),
        ({"max_seconds": 1.0, "hidden": 9}, "with preset fast, a model without a deep part, which max_seconds 1 leads"),
        ({"model": "wide", "lr": 0.1}, "lr 0.1 has no effect"),
        ({"model": "wide", "optimizer": "sgd"}, "optimizer sgd has no effect with model wide, a model without a deep"),
        ({"preset": "fast", "weight_decay": 0.1}, "weight_decay 0.1 has no effect with preset fast"),
        ({"task": "points", "preset": "best"}, "preset best has no effect with task points; omit preset"),
        ({"task": "points", "model": "wide", "hidden": 9}, "model wide has no effect with task points"),
        ({"task": "words", "hidden": 9}, "hidden 9 has no effect with task words"),
        ({"task": "words", "optimise": "accuracy"}, "optimise accuracy has no effect with task words"),
        ({"model": "deep", "characters": 4}, "characters 4 has no effect with model deep, a model without a wide part"),
        ({"model": "deep", "wide_lr": 0.1}, "wide_lr 0.1 has no effect"),
        ({"cell": "lstm", "window": 5}, "window 5 has no effect with cell lstm; use cell conv, or omit window"),
        ({"embeddings": "v", "vector_epochs": 2}, "vector_epochs 2 has no effect with embeddings v"),
        ({"from_run": "old", "vector_epochs": 2}, "no effect with from_run, which starts from .*; omit vector_epochs"),
    ],
)
def test_an_option_without_effect_is_refused(options: dict[str, Any], message: str) -> None:
    with pytest.raises(UsageError, match=message):
        check(**options)


@pytest.mark.parametrize(
    "options",
    [
        {"embeddings": "v", "freeze_embeddings": 1, "ngrams": 2, "window": 5, "lr": 0.1},
        {"model": "wide", "embeddings": "none", "ngrams": 2},
        {"preset": "fast", "model": "wide-deep", "hidden": 9},
        {"from_run": "old", "freeze_embeddings": 1},
        {"model": "deep", "cell": "gru", "characters": 0, "optimizer": "sgd", "momentum": 0.5, "weight_decay": 0.1},
        {"task": "points", "hidden": 9, "optimizer": "sgd", "lr": 0.1, "negation_rows": 0.0},
        {"task": "words", "embedding_dim": 9, "weight_decay": 0.1},
    ],
)
def test_an_option_with_an_effect_is_taken(options: dict[str, Any]) -> None:
    check(**options)


def test_every_option_of_a_part_is_a_setting() -> None:
    assert {*OF_WIDE, *OF_DEEP, *OF_REVIEWS} <= vars(SMALL).keys()
    assert all(set(task.model_settings or ()) <= {*OF_WIDE, *OF_DEEP, *OF_REVIEWS} for task in TASKS.values())


def test_a_settings_object_may_serve_several_models() -> None:
    asked = replace(SMALL, model="wide")
    refuse_without_effect(asked, complete(asked, FACTS), set())
    asked = replace(asked, embeddings="v")
    with pytest.raises(UsageError, match="embeddings v has no effect with model wide"):
        refuse_without_effect(asked, complete(asked, FACTS), set())


def test_nothing_is_made_before_the_refusal(data: Path, tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="ngrams 2 has no effect with model deep"):
        tenor.train(data, tmp_path / "run", SMALL, model="deep", ngrams=2)
    with pytest.raises(UsageError, match="window 5 has no effect with cell lstm"):
        compare(data, tmp_path / "run", replace(SMALL, window=5), ["lstm", "gru"], given={"window"})
    assert not (tmp_path / "run").exists()


def test_compared_cells_may_have_options_of_their_own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    given: dict[str, Any] = {}

    def train(data: str, out: Path, settings: TrainSettings, progress: object, names: set[str]) -> tenor.TrainResult:
        given[settings.cell] = names
        figures = {"valid": {}, "test": {}, "samples_per_s": 1.0, "seconds": 1.0, "train_rows": 9}
        return tenor.TrainResult(out, figures)

    monkeypatch.setattr("tenor.training.launching.compare.train", train)
    rows = compare("data", tmp_path / "runs", replace(SMALL, window=2), ["conv", "lstm"], given={"window"}).rows
    assert given == {"conv": {"cell", "window"}, "lstm": {"cell"}}
    assert [row["train_rows"] for row in rows] == [9, 9]
