"""Contributions of n-grams against the logits of the torch model."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import torch
from helpers.corpora import make_reviews

from tenor.bench.peers.predicting import PlainTorch
from tenor.insights.scoring import Contributions, RunScorer, Sides
from tenor.models.inference import Inference
from tenor.models.spec import WideSpec
from tenor.models.wide.characters import hash_characters
from tenor.prediction.worker_model import ModelRef
from tenor.runtime.wide import WideSums, WideTable


def test_the_contributions_of_a_row_add_up_to_its_wide_logit(run: Path) -> None:
    scorer = RunScorer(ModelRef.of(run))
    tokens, lengths = scorer.encode([review.text for review in make_reviews(40, seed=9)])
    contributions = scorer.contributions()
    assert contributions is not None
    found = contributions(tokens, lengths)
    model = PlainTorch.of_run(run).network
    logits = Inference(model).logits(tokens, lengths)[0, :, 0]  # of the wide part
    assert model.wide is not None
    bias, scale = float(model.wide.bias.detach()[0]), float(model.combination.scales[0])
    ends = np.cumsum(lengths)
    for row, end in enumerate(ends):
        start = end - lengths[row]
        different = {}  # an n-gram counts once per row, however often it occurs
        for at in range(start, end):
            for n in range(contributions.longest):
                if at + n < end:
                    different[tuple(tokens[at : at + n + 1])] = float(found[at, n])
        assert abs(sum(different.values()) - scale * (logits[row] - bias)) < 1e-4
    assert np.abs(found).max() > 0


def test_contributions_do_not_depend_on_the_rows_before(run: Path) -> None:
    scorer = RunScorer(ModelRef.of(run))
    tokens, lengths = scorer.encode(["a superb film", "a superb film"])
    contributions = scorer.contributions()
    assert contributions is not None
    found = contributions(tokens, lengths)
    np.testing.assert_array_equal(found[: lengths[0]], found[lengths[0] :])
    np.testing.assert_array_equal(contributions(tokens, lengths), found)


def test_a_run_without_a_wide_part_has_no_contributions(deep_run: Path) -> None:
    assert RunScorer(ModelRef.of(deep_run)).contributions() is None


def test_the_sides_are_the_halves_of_the_classes() -> None:
    assert Sides.of(2) == Sides((0,), (1,))
    assert Sides.of(5) == Sides((0, 1), (3, 4))


def test_n_grams_without_importance_contribute_nothing() -> None:
    torch.manual_seed(0)
    none = Contributions(np.zeros(16, np.float32), np.ones(16, np.float32), 2)
    assert not none(np.array([2, 3, 4], np.int32), np.array([3], np.int32)).any()


def test_a_word_contributes_with_its_character_ngrams() -> None:
    """The two words share none, so the contributions add up to the logit."""
    rng, chars = np.random.default_rng(2), hash_characters(["good", "bad"], 2, 3)
    importance, weights = (rng.random(1 << 12).astype(np.float32) for _ in range(2))
    tokens, lengths = np.array([2, 3], np.int32), np.array([2], np.int32)
    found = Contributions(importance, weights, 2, chars)(tokens, lengths)
    table = {"wide.importance": importance, "wide.ngrams.weight": weights[:, None], "wide.bias": np.zeros(1)}
    expected = WideSums(WideTable(WideSpec(12, 2, 3), table, chars)).logits(tokens, np.array([2]))
    np.testing.assert_allclose(found.sum(), expected.sum(), rtol=1e-5)
    assert len(chars.hashes) == 7
