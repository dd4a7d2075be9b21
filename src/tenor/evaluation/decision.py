"""From probabilities to labels: the threshold of two classes, how it is chosen, and when a model should not answer."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from tenor.evaluation.goal import Goal

MIDDLE = 0.5  # the threshold of a model for which none was chosen


def decide(probabilities: NDArray[np.float32], threshold: float = MIDDLE) -> NDArray[np.int64]:
    """The predicted label of each row. A tie goes to the lower label.

    Args:
        probabilities: (rows,) of the second of two classes, or (rows, classes).
        threshold: What the probability of the second of two classes must exceed; more classes have none.
    """
    if probabilities.ndim == 1:
        return (probabilities > threshold).astype(np.int64)
    if probabilities.shape[1] == 2:
        return (probabilities[:, 1] > threshold).astype(np.int64)
    labels: NDArray[np.int64] = probabilities.argmax(axis=1)
    return labels


def confidence(probabilities: NDArray[np.float32], labels: NDArray[np.int64]) -> NDArray[np.float32]:
    """The probability of each row's label; `probabilities` as for `decide`."""
    if probabilities.ndim == 1:
        return np.where(labels == 1, probabilities, np.float32(1.0) - probabilities)
    chances: NDArray[np.float32] = probabilities[np.arange(len(labels)), labels]
    return chances


def choose_threshold(goal: Goal, probabilities: NDArray[np.float32], labels: NDArray[np.int64]) -> float:
    """The threshold that serves the goal best on these rows; of equally good ones, the closest to the middle.

    Args:
        goal: What to optimise. If no threshold reaches a precision, the one with the highest precision is chosen.
        probabilities: (rows,) of the positive class.
        labels: (rows,) 0 or 1.
    """
    values, group = np.unique(probabilities.astype(np.float64), return_inverse=True)
    positive = np.bincount(group, labels, minlength=len(values))
    negative = np.bincount(group, 1 - labels, minlength=len(values))
    # Threshold i lies between the values i - 1 and i: rows of the values from i on are predicted positive.
    limits = np.concatenate([[0.0], (values[:-1] + values[1:]) / 2, [1.0]])
    hits = np.concatenate([[0.0], np.cumsum(positive[::-1])])[::-1]
    false_alarms = np.concatenate([[0.0], np.cumsum(negative[::-1])])[::-1]
    score = _scores(goal, hits, false_alarms)
    best = np.flatnonzero(score >= score.max() - 1e-12)
    return float(limits[best[np.abs(limits[best] - MIDDLE).argmin()]])


def _scores(goal: Goal, hits: NDArray[np.float64], false_alarms: NDArray[np.float64]) -> NDArray[np.float64]:
    """How well each threshold serves the goal, by the number of true and of false positives."""
    positives, negatives = hits[0], false_alarms[0]
    misses, rejected = positives - hits, negatives - false_alarms
    if goal.kind == "accuracy":
        return np.asarray((hits + rejected) / (positives + negatives))
    if goal.kind == "f1-macro":
        of_positive = 2 * hits / np.maximum(2 * hits + false_alarms + misses, 1)
        of_negative = 2 * rejected / np.maximum(2 * rejected + misses + false_alarms, 1)
        return np.asarray((of_positive + of_negative) / 2)
    precision = hits / np.maximum(hits + false_alarms, 1)
    is_reached = precision >= goal.precision
    return np.where(is_reached, hits / max(positives, 1), 0.0) if is_reached.any() else precision - 1.0
