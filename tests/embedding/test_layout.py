"""The map of words: chances and gradient by their definitions, and groups that stay together."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch

from tenor.embedding.layout import gradient, lay_out, move_apart, neighbour_chances


def unit(vectors: np.ndarray) -> np.ndarray:
    return (vectors / np.linalg.norm(vectors, axis=1, keepdims=True)).astype(np.float32)


def test_every_word_has_the_perplexity_asked_for() -> None:
    """The chances before they are made symmetric are found again from their definition, word by word."""
    vectors = unit(np.random.default_rng(0).normal(size=(12, 5)))
    found = neighbour_chances(vectors, 4.0)
    assert found.sum() == pytest.approx(1.0) and (found == found.T).all() and (np.diag(found) == 0).all()

    def row(word: int, sharpness: float) -> np.ndarray:
        weights = [
            0.0 if other == word else math.exp(-sharpness * float(np.sum((vectors[word] - vectors[other]) ** 2)))
            for other in range(12)
        ]
        return np.array(weights) / sum(weights)

    def perplexity(chances: np.ndarray) -> float:
        return math.exp(-sum(chance * math.log(chance) for chance in chances if chance > 0))

    expected = np.zeros((12, 12))
    for word in range(12):
        tried = [row(word, sharpness) for sharpness in np.geomspace(1e-2, 1e2, 4000)]
        expected[word] = min(tried, key=lambda chances: abs(perplexity(chances) - 4.0))
    np.testing.assert_allclose(found, (expected + expected.T) / 24, atol=1e-3)


def test_the_gradient_is_that_of_the_divergence() -> None:
    rng = np.random.default_rng(1)
    chances = neighbour_chances(unit(rng.normal(size=(9, 4))), 3.0)
    places = torch.tensor(rng.normal(size=(9, 2)), requires_grad=True)
    closeness = 1 / (1 + (places[:, None] - places[None]).pow(2).sum(-1)) * (1 - torch.eye(9))
    share = closeness / closeness.sum()
    off = ~torch.eye(9, dtype=torch.bool)
    wanted = torch.from_numpy(chances)
    (wanted[off] * (wanted[off] / share[off]).log()).sum().backward()
    assert places.grad is not None
    np.testing.assert_allclose(gradient(places.detach().numpy(), chances), places.grad.numpy(), rtol=1e-9, atol=1e-12)


def test_groups_of_similar_words_stand_together() -> None:
    rng = np.random.default_rng(2)
    groups = np.repeat(np.arange(6), 15)
    vectors = unit(rng.normal(size=(6, 20))[groups] + 0.3 * rng.normal(size=(90, 20)))
    places = lay_out(vectors)
    distances = np.linalg.norm(places[:, None] - places[None], axis=2) + 1e9 * np.eye(90)
    nearest = np.argsort(distances, axis=1)[:, :5]
    assert (groups[nearest] == groups[:, None]).mean() > 0.95
    np.testing.assert_array_equal(places, lay_out(vectors))


@pytest.mark.parametrize("vectors", [np.zeros((5, 3)), np.ones((5, 1)), np.eye(4)])
def test_odd_vectors_get_places_too(vectors: np.ndarray) -> None:
    assert np.isfinite(lay_out(vectors.astype(np.float32))).all()


def test_boxes_are_moved_until_none_covers_another() -> None:
    rng = np.random.default_rng(3)
    places = np.concatenate([rng.uniform(0, 10, (60, 2)), np.ones((3, 2))])
    sizes = np.stack([rng.uniform(0.2, 1.0, 63), np.full(63, 0.15)], axis=1)

    def num_covering(places: np.ndarray) -> int:
        gaps = np.abs(places[:, None] - places[None]) - (sizes[:, None] + sizes[None]) / 2
        return int((gaps < -1e-9).all(axis=2).sum()) - len(places)

    moved = move_apart(places, sizes)
    assert num_covering(places) > 0 == num_covering(moved)
    assert (moved[:, 0] == places[:, 0]).all() and np.abs(moved - places).max() < 1.0
