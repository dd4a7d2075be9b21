"""Noisy points on four interleaved spirals: a task whose best possible accuracy is known.

A point of class c lies at a uniformly drawn position t on its spiral, plus normal noise. So the density of each class
is known, and the Bayes accuracy is the integral of a quarter of the largest density.
"""

from __future__ import annotations

from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

NUM_CLASSES = 4
TURNS = 0.75
INNER, OUTER = 0.5, 2.0  # radius of a spiral where it starts and where it ends
NOISE = 0.115

Floats = NDArray[np.float64]


def make_points(num_points: int, seed: int) -> tuple[NDArray[np.float32], NDArray[np.uint8]]:
    """Coordinates (points, 2) and classes (points,), in random order, the classes as equal in number as possible."""
    rng = np.random.Generator(np.random.Philox(key=[seed, 0]))
    labels = rng.permutation(np.arange(num_points) % NUM_CLASSES)
    points = _spiral(rng.random(num_points), labels) + rng.normal(0.0, NOISE, (num_points, 2))
    return points.astype(np.float32), labels.astype(np.uint8)


def _spiral(t: Floats, labels: NDArray[np.int64] | int) -> Floats:
    radius = INNER + (OUTER - INNER) * t
    angle = 2.0 * np.pi * (TURNS * t + np.asarray(labels) / NUM_CLASSES)
    return np.stack([radius * np.cos(angle), radius * np.sin(angle)], axis=-1)


def densities(points: Floats, num_steps: int = 300) -> Floats:
    """The density of each class, (points, classes).

    It is an integral along the spiral, evaluated at the middles of `num_steps` intervals, which are far shorter than
    the noise is wide.
    """
    t = (np.arange(num_steps) + 0.5) / num_steps
    found = np.empty((len(points), NUM_CLASSES))
    for label in range(NUM_CLASSES):
        curve = _spiral(t, label)
        squares = (points**2).sum(1)[:, None] + (curve**2).sum(1) - 2.0 * points @ curve.T
        found[:, label] = np.exp(-squares / (2.0 * NOISE**2)).mean(1) / (2.0 * np.pi * NOISE**2)
    return found


@lru_cache(maxsize=1)
def bayes_accuracy(spacing: float = 0.03) -> float:
    """The accuracy of the best possible classifier: the integral over a grid that holds practically all of the mass."""
    reach = OUTER + 8.0 * NOISE
    axis = np.arange(-reach, reach, spacing)
    grid = np.stack(np.meshgrid(axis, axis), axis=-1).reshape(-1, 2)
    total = sum(float(densities(part).max(1).sum()) for part in np.array_split(grid, 16))
    return total * spacing**2 / NUM_CLASSES
