"""Places of words on a map, so that words with similar vectors stand together: t-SNE, exact, for some hundred words.

van der Maaten and Hinton 2008, "Visualizing Data using t-SNE": each word has a chance of choosing every other word as
its neighbour, by their vectors and by their places on the map. The places move until the chances agree.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

PERPLEXITY = 20.0  # about how many neighbours count
STEPS, EARLY_STEPS = 600, 150
EXAGGERATION = 8.0  # of the chances in the early steps, so that groups form first
EARLY_MOMENTUM, MOMENTUM = 0.5, 0.8
BISECTIONS = 50
LEAST = 1e-12  # so that logarithms stay finite

Doubles = npt.NDArray[np.float64]


def lay_out(vectors: npt.NDArray[np.float32]) -> Doubles:
    """Return places on a map, (words, 2). The same vectors always get the same places.

    Args:
        vectors: One vector of length 1 per word, (words, dim); at least four words.
    """
    chances = neighbour_chances(vectors, min(PERPLEXITY, (len(vectors) - 1) / 3))
    places = _main_directions(vectors)
    moved, gains = np.zeros_like(places), np.ones_like(places)
    rate = max(len(vectors) / EXAGGERATION, 10.0)
    for step in range(STEPS):
        is_early = step < EARLY_STEPS
        slope = gradient(places, chances * EXAGGERATION if is_early else chances)
        gains = np.maximum(np.where(slope * moved < 0, gains + 0.2, gains * 0.8), 0.01)
        moved = (EARLY_MOMENTUM if is_early else MOMENTUM) * moved - rate * gains * slope
        places = places + moved
    return np.asarray(places - places.mean(axis=0), np.float64)


def neighbour_chances(vectors: npt.NDArray[Any], perplexity: float) -> Doubles:
    """The chances that two words choose each other as neighbours, (words, words), which add up to 1.

    The chance falls with the squared distance as a bell curve. Its width differs from word to word, so that each word
    has the same perplexity.
    """
    distances = _squared_distances(np.asarray(vectors, np.float64))
    np.fill_diagonal(distances, np.inf)  # nobody chooses itself
    nearest = distances.min(axis=1, keepdims=True)  # to keep exponents near 0
    low, high = np.zeros((len(vectors), 1)), np.full((len(vectors), 1), np.inf)
    sharpness = np.ones((len(vectors), 1))
    for _ in range(BISECTIONS):
        chances = np.exp(-sharpness * (distances - nearest))
        chances /= chances.sum(axis=1, keepdims=True)
        entropy = -(chances * np.log(np.maximum(chances, LEAST))).sum(axis=1, keepdims=True)
        is_wide = entropy > np.log(perplexity)
        low, high = np.where(is_wide, sharpness, low), np.where(is_wide, high, sharpness)
        sharpness = np.where(np.isinf(high), 2 * sharpness, (low + np.minimum(high, 1e300)) / 2)
    return np.asarray((chances + chances.T) / (2 * len(vectors)), np.float64)


def gradient(places: Doubles, chances: Doubles) -> Doubles:
    """The gradient of the divergence between the chances by vectors and those by places on the map."""
    closeness = 1.0 / (1.0 + _squared_distances(places))
    np.fill_diagonal(closeness, 0.0)
    pull = (chances - closeness / closeness.sum()) * closeness
    return np.asarray(4.0 * (pull.sum(axis=1)[:, None] * places - pull @ places), np.float64)


def move_apart(places: Doubles, sizes: Doubles, rounds: int = 200) -> Doubles:
    """Move boxes up and down until none covers another, or for some rounds.

    Args:
        places: The centres, (boxes, 2).
        sizes: Widths and heights, (boxes, 2).
        rounds: How often to try.
    """
    places = places.copy()
    reach = (sizes[:, None] + sizes[None]) / 2  # two centres must be this far apart, in one direction or the other
    order = np.arange(len(places))
    is_above = order[:, None] > order[None]  # which goes up if two are at the same height
    for _ in range(rounds):
        apart = places[:, None] - places[None]
        missing = np.where(np.abs(apart[..., 0]) < reach[..., 0], reach[..., 1] - np.abs(apart[..., 1]), 0.0)
        np.fill_diagonal(missing, 0.0)
        if not (missing > LEAST).any():
            break
        up = np.where((apart[..., 1] > 0) | ((apart[..., 1] == 0) & is_above), 1.0, -1.0)
        places[:, 1] += (np.maximum(missing, 0.0) * up).sum(axis=1) / 2
    return places


def _squared_distances(points: Doubles) -> Doubles:
    squares = (points**2).sum(axis=1)
    return np.asarray(np.maximum(squares[:, None] + squares[None, :] - 2 * points @ points.T, 0.0), np.float64)


def _main_directions(vectors: npt.NDArray[np.float32]) -> Doubles:
    """The vectors along their two main directions, small: where the words stand at first."""
    centred = np.asarray(vectors, np.float64) - vectors.mean(axis=0)
    _, _, axes = np.linalg.svd(centred, full_matrices=False)
    signs = np.sign(axes[np.arange(len(axes)), np.abs(axes).argmax(axis=1)])[:, None]  # SVD leaves the signs open
    flat = np.zeros((len(vectors), 2))
    flat[:, : len(axes[:2])] = centred @ (axes * signs)[:2].T
    return np.asarray(1e-2 * flat / max(float(flat.std()), LEAST), np.float64)
