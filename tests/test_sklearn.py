"""The scikit-learn estimator: it learns, clones, pickles, and fits pipelines and cross-validation."""

from __future__ import annotations

import pickle
import warnings

import numpy as np
import pytest
from helpers.corpora import make_reviews

from tenor.errors import UsageError

pytest.importorskip("sklearn", reason="scikit-learn is not installed")

from sklearn.base import clone
from sklearn.model_selection import cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer
from sklearn.utils.estimator_checks import check_estimator

from tenor.sklearn import ReviewClassifier

REVIEWS = make_reviews(300, seed=1)
TEXTS = np.array([review.text for review in REVIEWS], dtype=object)
GOOD = np.array(["good" if review.rating > 3 else "bad" for review in REVIEWS])


def test_it_learns_and_survives_pickling() -> None:
    model = ReviewClassifier(epochs=2).fit(TEXTS, GOOD)
    assert model.score(TEXTS, GOOD) > 0.9 and list(model.classes_) == ["bad", "good"]
    chances = model.predict_proba(TEXTS[:5])
    assert chances.shape == (5, 2) and chances.sum(axis=1) == pytest.approx(np.ones(5))
    again = pickle.loads(pickle.dumps(model))
    np.testing.assert_array_equal(again.predict_proba(TEXTS[:5]), chances)
    assert clone(model).get_params() == model.get_params()


def test_it_drops_into_pipelines_and_cross_validation() -> None:
    pipeline = make_pipeline(FunctionTransformer(lambda texts: texts), ReviewClassifier(epochs=1))
    assert cross_val_score(pipeline, TEXTS, GOOD, cv=2).mean() > 0.8


def test_three_classes_and_wrong_labels() -> None:
    stars = np.array([min(review.rating, 4) for review in REVIEWS])
    model = ReviewClassifier(epochs=1).fit(TEXTS, stars)
    assert set(model.classes_) == {1, 2, 4} and model.predict_proba(TEXTS[:4]).shape == (4, 3)
    assert set(model.predict(TEXTS[:50])) <= {1, 2, 4}
    with pytest.raises(UsageError, match="2 to 5 classes, not 1"):
        ReviewClassifier().fit(TEXTS, np.ones(len(TEXTS)))
    with pytest.raises(UsageError, match="300 texts and 2 labels"):
        ReviewClassifier().fit(TEXTS, [0, 1])


def test_the_checks_of_scikit_learn_that_apply_to_texts() -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # most checks need tables of numbers and are skipped with a warning
        check_estimator(ReviewClassifier())
