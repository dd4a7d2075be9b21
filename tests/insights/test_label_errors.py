"""Suspected label errors: flipped labels come first, and no row is judged by a model that has seen it."""

from __future__ import annotations

import random
from pathlib import Path

import numpy as np
from helpers.corpora import make_reviews
from insights.stored import store_texts

from tenor.insights.label_errors import label_errors, out_of_fold

CLASSES = ("negative", "positive")


def test_flipped_labels_are_among_the_first_suspects(tmp_path: Path) -> None:
    reviews = sorted(make_reviews(1500, seed=2), key=lambda review: review.rating)  # files are often sorted
    labels = [int(review.rating > 3) for review in reviews]
    flipped = set(random.Random(5).sample(range(len(labels)), 75))
    given = [1 - label if row in flipped else label for row, label in enumerate(labels)]
    store, _ = store_texts(tmp_path, [review.text for review in reviews], labels=given)
    try:
        found = label_errors(store, np.arange(len(store)), CLASSES, 0.08)
    finally:
        store.close()
    assert len(found) == 120
    assert sum(row["line"] - 1 in flipped for row in found) >= 0.6 * len(flipped)
    assert [row["probability"] for row in found] == sorted(row["probability"] for row in found)
    assert found[0]["label"] == CLASSES[given[found[0]["line"] - 1]] != found[0]["predicted"]


def test_a_model_that_has_seen_a_row_would_believe_any_label(tmp_path: Path) -> None:
    """Random labels of random words, which all rows share: out of fold they cannot be guessed."""
    rng = random.Random(0)
    words = [f"word{letters(number)}" for number in range(300)]
    texts = [" ".join(rng.sample(words, 12)) for _ in range(600)]
    labels = [rng.randrange(2) for _ in texts]
    store, _ = store_texts(tmp_path, texts, labels=labels)
    try:
        chances = out_of_fold(store, np.arange(600), np.arange(600), 2)
    finally:
        store.close()
    assert 0.4 < np.mean(chances.argmax(axis=1) == labels) < 0.6


def test_near_duplicates_are_in_one_fold(tmp_path: Path) -> None:
    """Four copies with the same random label each: only a model that has seen the others could guess it."""
    rng = random.Random(1)
    texts = [f"this film was own{letters(row)} and unique{letters(row)}" for row in range(150) for _ in range(4)]
    labels = [label for _ in range(150) for label in [rng.randrange(2)] for _ in range(4)]
    first = np.repeat(np.arange(0, 600, 4), 4)
    store, _ = store_texts(tmp_path, texts, labels=labels)
    try:
        together = out_of_fold(store, first, np.arange(600), 2).argmax(axis=1)
        apart = out_of_fold(store, np.arange(600), np.arange(600), 2).argmax(axis=1)
    finally:
        store.close()
    assert np.mean(together == labels) < 0.6
    assert np.mean(apart == labels) > 0.75


def test_neutral_rows_are_not_judged_and_few_rows_not_at_all(tmp_path: Path) -> None:
    reviews = make_reviews(200, seed=2)
    labels = [-1 if row % 2 else int(review.rating > 3) for row, review in enumerate(reviews)]
    store, _ = store_texts(tmp_path, [review.text for review in reviews], labels=labels)
    try:
        assert {row["line"] % 2 for row in label_errors(store, np.arange(200), CLASSES, 1.0)} == {1}
        store.labels[:] = -1
        store.labels[:10] = [0, 1] * 5
        assert label_errors(store, np.arange(200), CLASSES, 1.0) == []
    finally:
        store.close()


def letters(number: int) -> str:
    return "".join(chr(ord("a") + int(digit)) for digit in str(number))
