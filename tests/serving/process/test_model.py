"""The model behind the service says what `tenor predict` says."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import torch
from helpers.models import change_weights, write_model

import tenor
from tenor.runtime.explain import ExplainedPiece
from tenor.serving.app import Scored, _prediction
from tenor.serving.process.model import ServedModel, grouped, load_served
from tenor.serving.reload import fingerprint_of

TEXTS = ["not good film", "", "good " * 7 + "bad plot!", "zzz"]


@pytest.mark.parametrize("threshold", [0.2, 0.5, 0.9])
def test_labels_and_explanations_are_those_of_predict(tmp_path: Path, threshold: float) -> None:
    run = write_model(tmp_path / "run", cell="conv", pooling="max")
    change_weights(run, combination__threshold=torch.tensor([threshold]))
    model = tenor.load(run)
    served = ServedModel(model, "1")
    rows = served.predict_proba(TEXTS).tolist()
    labels = [_prediction(Scored(row, served.labels, "1", served.threshold), False)["label"] for row in rows]
    assert labels == [prediction.label for prediction in model.predict(TEXTS)]
    for text, label, found in zip(TEXTS, labels, served.explain(TEXTS), strict=True):
        assert [*map(tuple, found)] == [tuple(piece) for piece in model.explain(text, label)]


def test_the_words_of_a_long_text_are_grouped() -> None:
    text = "a bb c d e"
    places = [(0, 1), (2, 4), (5, 6), (7, 8), (9, 10)]
    pieces = [ExplainedPiece(a, b, text[a:b], float(n)) for n, (a, b) in enumerate(places)]
    assert grouped(text, pieces, 5) == [tuple(piece) for piece in pieces]
    assert grouped(text, pieces, 2) == [(0, 6, "a bb c", 3.0), (7, 10, "d e", 7.0)]
    assert grouped(text, pieces, 3) == [(0, 4, "a bb", 1.0), (5, 8, "c d", 5.0), (9, 10, "e", 4.0)]
    assert grouped("", []) == []


def test_a_compact_model_is_served(tmp_path: Path) -> None:
    run, file = write_model(tmp_path / "run", cell="gru"), tmp_path / "small.tenor"
    tenor.export_model(run, file, format="compact")
    before, served = fingerprint_of(file), load_served(file, 1)
    assert served.labels == ("negative", "positive") and len(served.version) == 12
    file.write_bytes(file.read_bytes())
    assert fingerprint_of(file) != before
    assert load_served(run, 1).version != served.version
    assert json.dumps(served.explain(["good"]))
