"""NBSVM and TF-IDF with logistic regression, by scikit-learn and its liblinear; and the majority class."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tenor.bench.peers.classifiers.base import Chances, Fitted, Given, accuracy_of, choose_best

SMOOTHING = 1.0  # α of the paper
INTERPOLATIONS = (0.25, 1.0)  # β of the paper: between naive Bayes and the support vector machine alone
NBSVM_PENALTIES = (0.1, 1.0)  # C of the paper for short and for long texts
TFIDF_PENALTIES = (1.0, 4.0, 16.0, 64.0)
_SCALES = np.geomspace(0.05, 20.0, 200)


def majority(given: Given) -> Fitted:
    """Always the most frequent label, with its share as the probability."""
    share = float(np.mean(given.train.labels))
    return Fitted(lambda texts: np.full(len(texts), share), 0.0, 0.0, 8, "")


def log_count_ratio(features: Any, labels: NDArray[np.int64]) -> NDArray[np.float64]:
    """The naive-Bayes log-count ratio r = log((p / |p|) / (q / |q|)) of every feature.

    Args:
        features: (rows, features), sparse, 1 where a feature occurs.
        labels: (rows,), 0 or 1.
    """
    p, q = (SMOOTHING + np.asarray(features[labels == label].sum(axis=0)).ravel() for label in (1, 0))
    ratio: NDArray[np.float64] = np.log((p / p.sum()) / (q / q.sum()))
    return ratio


def nbsvm(given: Given, longest: int) -> Fitted:
    """Wang and Manning 2012, "Baselines and Bigrams": a linear SVM on binary n-grams weighted by log-count ratios.

    The SVM has no probabilities: its margins are scaled by one number, fitted on the validation rows, which leaves the
    labels as they are. N-grams of three words must occur in two reviews, to bound the memory.
    """
    from sklearn.feature_extraction.text import CountVectorizer
    from sklearn.svm import LinearSVC

    began = time.perf_counter()
    vectorizer = CountVectorizer(
        ngram_range=(1, longest),
        binary=True,
        token_pattern=r"\S+",
        lowercase=False,
        min_df=1 if longest < 3 else 2,
        dtype=np.float32,
    )
    found = vectorizer.fit_transform(given.train.texts)
    labels = np.asarray(given.train.labels)
    ratio = log_count_ratio(found, labels)
    weighted = found.multiply(ratio[None, :]).tocsr()
    shared = time.perf_counter() - began
    valid = vectorizer.transform(given.valid.texts)

    def train(option: tuple[float, float]) -> tuple[str, tuple[NDArray[np.float64], float], float]:
        penalty, beta = option
        svm = LinearSVC(C=penalty, max_iter=2000, random_state=given.seed).fit(weighted, labels)
        own = svm.coef_.ravel()
        weights = ratio * ((1 - beta) * np.abs(own).mean() + beta * own)
        bias = float(svm.intercept_[0])
        accuracy = accuracy_of(_logistic(valid @ weights + bias), given.valid.labels)
        return f"C={penalty:g} beta={beta:g}", (weights, bias), accuracy

    best, others = choose_best([(c, b) for c in NBSVM_PENALTIES for b in INTERPOLATIONS], train)
    weights, bias = best.model
    scale = fit_scale(valid @ weights + bias, np.asarray(given.valid.labels))

    def chances(texts: list[str]) -> Chances:
        return _logistic(scale * (vectorizer.transform(texts) @ weights + bias))

    size = _size(vectorizer.vocabulary_, len(weights))
    return Fitted(chances, shared + best.seconds, others, size, best.name)


def tfidf(given: Given) -> Fitted:
    """TF-IDF of words and pairs of words, with logistic regression."""
    from sklearn.feature_extraction.text import TfidfVectorizer
    from sklearn.linear_model import LogisticRegression

    began = time.perf_counter()
    vectorizer = TfidfVectorizer(
        ngram_range=(1, 2), min_df=2, sublinear_tf=True, token_pattern=r"\S+", lowercase=False, dtype=np.float32
    )
    found = vectorizer.fit_transform(given.train.texts)
    shared = time.perf_counter() - began
    valid = vectorizer.transform(given.valid.texts)

    def train(penalty: float) -> tuple[str, Any, float]:
        model = LogisticRegression(C=penalty, solver="liblinear", random_state=given.seed)
        model.fit(found, given.train.labels)
        return f"C={penalty:g}", model, accuracy_of(model.predict_proba(valid)[:, 1], given.valid.labels)

    best, others = choose_best(TFIDF_PENALTIES, train)

    def chances(texts: list[str]) -> Chances:
        found: Chances = best.model.predict_proba(vectorizer.transform(texts))[:, 1]
        return found

    size = _size(vectorizer.vocabulary_, 2 * len(vectorizer.vocabulary_))  # weights, and inverse frequencies
    return Fitted(chances, shared + best.seconds, others, size, best.name)


def fit_scale(margins: NDArray[np.float64], labels: NDArray[np.int64]) -> float:
    """Return the factor of the margins that gives the smallest log loss."""
    signed = np.where(labels == 1, margins, -margins)
    losses = [np.logaddexp(0.0, -scale * signed).mean() for scale in _SCALES]
    return float(_SCALES[int(np.argmin(losses))])


def _logistic(margins: NDArray[Any]) -> Chances:
    return np.asarray(1.0 / (1.0 + np.exp(-np.clip(margins, -500, 500))), np.float64)


def _size(vocabulary: Mapping[str, int] | Sequence[str], numbers: int) -> int:
    """The bytes of all n-grams with a 4-byte index each, and of the numbers in 4 bytes."""
    return sum(len(word.encode()) + 4 for word in vocabulary) + 4 * numbers
