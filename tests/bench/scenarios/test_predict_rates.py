"""Scenario `predict`: plain torch computes the same model, so the comparison of speeds is fair."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from helpers.models import WORDS, write_model

import tenor
from tenor.bench.peers.predicting import PlainTorch
from tenor.bench.scenarios import SCENARIOS
from tenor.bench.scenarios.predict import _timed

TEXTS = ["not good film", "", "good " * 7 + "bad", *[" ".join(WORDS[n:]) for n in range(5)]]


@pytest.mark.soak
def test_plain_torch_gives_the_same_probabilities(tmp_path: Path) -> None:
    run = write_model(tmp_path / "run", cell="conv", pooling="max")
    expected = tenor.load(run).predict_proba(TEXTS)[:, 1]
    np.testing.assert_allclose(PlainTorch.of_run(run).predict(TEXTS), expected, atol=1e-6)
    assert len(PlainTorch.first_default(run).predict(TEXTS)) == len(TEXTS)


def test_rates_are_reviews_by_seconds() -> None:
    assert "predict" in SCENARIOS
    found = _timed(lambda texts: sum(range(100_000)), TEXTS)
    assert found["reviews_per_s"] == pytest.approx(len(TEXTS) / found["seconds"])
