"""Explanations: contributions add up, name the words that matter, and deleting those words changes the decision."""

from __future__ import annotations

import random
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
import torch
from helpers.corpora import BAD, GOOD, make_reviews, write_json_lines
from helpers.models import change_weights, write_model
from helpers.training import run as train

import tenor
from tenor.errors import UsageError
from tenor.models.spec import WideSpec
from tenor.runtime.explain import ExplainedPiece, deep_values, wide_ngrams

TEXT = "Good film! Not a bad PLOT, good film"


@pytest.mark.parametrize("characters", [0, 4])
def test_contributions_add_up_to_the_logit(tmp_path: Path, characters: int) -> None:
    run = write_model(tmp_path / "run", cell="conv", pooling="max", wide=WideSpec(8, 2, characters))
    change_weights(run, deep__forwards__0__bias=torch.tensor([-9.0, 0.0, -9.0, 0.0]), deep__head__bias=torch.zeros(1))
    model = tenor.load(run)
    tokens, lengths = model.encoder([TEXT])
    logit = model.parts.logits(tokens, lengths)[0, 0]
    assert model.parts.wide is not None
    constant = model.parts.shifts[0] + model.parts.scales[0] * model.parts.wide.bias[0]
    pieces = model.explain(TEXT)
    assert sum(piece.contribution for piece in pieces) + constant == pytest.approx(logit, abs=1e-5)
    by_ngram = model.explain(TEXT, ngrams=True)
    assert sum(piece.contribution for piece in by_ngram) + constant == pytest.approx(logit, abs=1e-5)
    against = model.explain(TEXT, "negative")
    assert [piece.contribution for piece in against] == [-piece.contribution for piece in pieces]


def test_pieces_are_parts_of_the_text(tmp_path: Path) -> None:
    model = tenor.load(write_model(tmp_path / "run", cell="gru", num_classes=3))
    pieces = model.explain(TEXT)
    assert all(TEXT[piece.start : piece.end] == piece.piece for piece in pieces)
    assert [piece.piece for piece in pieces] == ["Good", "film", "!", "Not", "a", "bad", "PLOT", "good", "film"]
    assert {"Good film", "bad PLOT"} <= {piece.piece for piece in model.explain(TEXT, ngrams=True)}
    assert model.explain("") == [] and isinstance(pieces[0], ExplainedPiece)
    with pytest.raises(UsageError, match="no class 'great'; choose one of"):
        model.explain(TEXT, "great")
    with pytest.raises(UsageError, match="got a value of type int instead of a list"):
        model.explain(5)  # type: ignore[call-overload]
    assert model.explain([TEXT, "", None]) == [pieces, [], []] and model.explain([]) == []
    assert model.explain(pa.array([TEXT]), "3", ngrams=True) == [model.explain(TEXT, "3", ngrams=True)]


def test_occlusion_is_the_logit_without_the_word(tmp_path: Path) -> None:
    parts = tenor.load(write_model(tmp_path / "run", cell="lstm", length=6)).parts
    tokens = np.array([2, 3, 4, 5, 6, 2, 3, 4], np.int32)  # the deep part reads the first and the last three
    values = deep_values(parts, tokens)
    read, deep = [0, 1, 2, 5, 6, 7], parts.deep
    assert deep is not None and not values[3:5].any()
    whole = deep(tokens[read], np.array([6], np.int32))
    for place in range(6):
        without = np.delete(tokens[read], place)
        expected = parts.scales[1] * (whole - deep(without, np.array([5], np.int32)))
        np.testing.assert_allclose(values[read[place]], expected[0], atol=1e-7)


def test_ngrams_of_many_texts(tmp_path: Path) -> None:
    model = tenor.load(write_model(tmp_path / "run"))
    texts = ["good film good film", "", "zzz bad"]
    found = model.contributions(texts)
    names = [found.phrase(n) for n in range(len(found.values))]
    rows = [names[a:b] for a, b in zip(found.starts[:-1], found.starts[1:], strict=True)]
    assert [sorted(row) for row in rows] == [
        ["film", "film good", "good", "good film"],
        ["…"],
        sorted(["bad", "… bad", "…"]),
    ]
    alone = wide_ngrams(model.parts, model.encoder([texts[0]])[0])
    assert [ngram.places for ngram in alone] == [[0, 2], [0, 2], [1, 3], [1]]
    np.testing.assert_allclose(found.values[:4], [ngram.values for ngram in alone])


def test_deleting_the_words_that_matter_changes_more_than_deleting_others(tmp_path: Path) -> None:
    raw = write_json_lines(tmp_path / "reviews.jsonl", make_reviews(600, seed=3))
    tenor.prepare([raw], tmp_path / "data", tenor.PrepareSettings(workers=1))
    train(tmp_path / "data", tmp_path / "run", model="wide-deep", cell="conv", pooling="max", epochs=3, test=False)
    model, rng = tenor.load(tmp_path / "run"), random.Random(0)
    told, guessed, hits = 0.0, 0.0, 0
    reviews = make_reviews(60, seed=9)
    for review in reviews:
        label = model.predict([review.text])[0].label
        pieces = sorted(model.explain(review.text, label), key=lambda piece: -piece.contribution)
        hits += len({piece.piece for piece in pieces[:3]} & {*GOOD, *BAD})
        place = model.classes.index(label)
        chances = model.predict_proba(
            [review.text, without(review.text, pieces[:3]), without(review.text, rng.sample(pieces, 3))]
        )[:, place]
        told, guessed = told + chances[0] - chances[1], guessed + chances[0] - chances[2]
    assert told > 3 * guessed and told > 0.1 * len(reviews)
    assert hits > 2 * len(reviews)  # of the three words that decide a review, explanations name more than two


def without(text: str, pieces: list[ExplainedPiece]) -> str:
    for piece in sorted(pieces, reverse=True):
        text = text[: piece.start] + text[piece.end :]
    return text
