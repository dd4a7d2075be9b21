"""Exact metrics from integer counts: the same to the bit in whatever order the scores were merged.

F1 is 2·TP / (2·TP + FP + FN), so true negatives never enter it. AUC is the share of (positive, negative) pairs that
the model puts in the right order, ties counting half, which is the area under the ROC curve without any binning.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tenor.errors import UsageError
from tenor.evaluation.scores import Scores


@dataclasses.dataclass(frozen=True)
class Metrics:
    """How good the predictions are, beside always answering with the most frequent class."""

    rows: int
    accuracy: float
    f1_macro: float
    f1_weighted: float
    log_loss: float  # the mean of −log of the probability that the true class was given
    auc: float | None  # None where only one class occurs: there is no pair to order
    per_class: dict[str, dict[str, float]]
    confusion: list[list[int]]  # rows are the true classes, columns the predicted ones
    majority_baseline: dict[str, Any]

    def as_dict(self) -> dict[str, Any]:
        return dataclasses.asdict(self)


def measure(scores: Scores, classes: Sequence[str]) -> Metrics:
    """Measure what was collected; `classes[i]` is the name of label i."""
    probabilities, labels = scores.arrays()
    _check(probabilities, labels, classes)
    confusion = count_confusion(labels, decide(probabilities), len(classes))
    return Metrics(
        rows=len(labels),
        **_summary(confusion),
        log_loss=_log_loss(probabilities, labels),
        auc=_area(probabilities, labels, len(classes)),
        per_class=_per_class(confusion, classes),
        confusion=confusion.tolist(),
        majority_baseline=_majority(confusion, classes),
    )


def decide(probabilities: NDArray[np.float32]) -> NDArray[np.int64]:
    """The predicted label of each row; a tie goes to the lower label, with two classes as with many."""
    if probabilities.ndim == 1:
        return (probabilities > 0.5).astype(np.int64)
    labels: NDArray[np.int64] = probabilities.argmax(axis=1)
    return labels


def count_confusion(labels: NDArray[np.int64], predicted: NDArray[np.int64], num_classes: int) -> NDArray[np.int64]:
    """(num_classes, num_classes) counts: true label down, predicted label across."""
    cells = np.bincount(labels * num_classes + predicted, minlength=num_classes**2)
    return cells.reshape(num_classes, num_classes)


def pair_auc(positive: NDArray[np.float32], negative: NDArray[np.float32]) -> float | None:
    """The share of (positive, negative) pairs in the right order, ties as half; n log n, integers until the end."""
    if not len(positive) or not len(negative):
        return None
    ordered = np.sort(negative)
    below = int(np.searchsorted(ordered, positive, side="left").sum(dtype=np.int64))
    not_above = int(np.searchsorted(ordered, positive, side="right").sum(dtype=np.int64))
    return (below + not_above) / (2 * len(positive) * len(negative))


def _log_loss(probabilities: NDArray[np.float32], labels: NDArray[np.int64]) -> float:
    """Of a probability of 0 the smallest that float32 can hold is taken."""
    if probabilities.ndim == 1:
        given = np.where(labels == 1, probabilities, 1.0 - probabilities)
    else:
        given = probabilities[np.arange(len(labels)), labels]
    return _mean(-np.log(np.maximum(given, np.finfo(np.float32).tiny).astype(np.float64)))


def _area(probabilities: NDArray[np.float32], labels: NDArray[np.int64], num_classes: int) -> float | None:
    if num_classes == 2:
        chances = probabilities if probabilities.ndim == 1 else probabilities[:, 1]
        return pair_auc(chances[labels == 1], chances[labels == 0])
    columns = [(probabilities[:, label], labels == label) for label in range(num_classes)]
    areas = [pair_auc(chances[own], chances[~own]) for chances, own in columns]
    known = [area for area in areas if area is not None]
    return _mean(known) if known else None


def _summary(confusion: NDArray[np.int64]) -> dict[str, float]:
    """Accuracy and averaged F1. Macro is over the classes that occur, as truth or as prediction."""
    true, said = confusion.sum(axis=1), confusion.sum(axis=0)
    f1 = _f1(confusion)
    rows = int(true.sum())
    return {
        "accuracy": int(confusion.trace()) / rows,
        "f1_macro": _mean(value for value, seen in zip(f1, true + said, strict=True) if seen),
        "f1_weighted": math.fsum(value * int(count) for value, count in zip(f1, true, strict=True)) / rows,
    }


def _f1(confusion: NDArray[np.int64]) -> list[float]:
    hits, true, said = confusion.diagonal(), confusion.sum(axis=1), confusion.sum(axis=0)
    return [_share(2 * int(h), int(t) + int(s)) for h, t, s in zip(hits, true, said, strict=True)]


def _per_class(confusion: NDArray[np.int64], classes: Sequence[str]) -> dict[str, dict[str, float]]:
    f1 = _f1(confusion)
    return {
        name: {
            "precision": _share(int(confusion[i, i]), int(confusion[:, i].sum())),
            "recall": _share(int(confusion[i, i]), int(confusion[i].sum())),
            "f1": f1[i],
            "rows": int(confusion[i].sum()),
        }
        for i, name in enumerate(classes)
    }


def _majority(confusion: NDArray[np.int64], classes: Sequence[str]) -> dict[str, Any]:
    """What answering always with the most frequent true class would score."""
    true = confusion.sum(axis=1)
    winner = int(true.argmax())
    always = np.zeros_like(confusion)
    always[:, winner] = true
    return {**_summary(always), "auc": 0.5, "class": classes[winner]}


def _check(probabilities: NDArray[np.float32], labels: NDArray[np.int64], classes: Sequence[str]) -> None:
    if not len(labels):
        raise UsageError("there are no rows to measure", remedy="give data with at least one labelled row")
    if len(classes) < 2 or probabilities.shape[1:] not in ([(), (2,)] if len(classes) == 2 else [(len(classes),)]):
        shape = probabilities.shape
        raise UsageError(f"probabilities of shape {shape} do not fit the classes {', '.join(classes)}")
    if labels.min() < 0 or labels.max() >= len(classes):
        raise UsageError(f"label {labels.max()} has no name", remedy=f"labels run from 0 to {len(classes) - 1}")


def _share(part: int, whole: int) -> float:
    return part / whole if whole else 0.0


def _mean(values: Iterable[float]) -> float:
    values = list(values)
    return math.fsum(values) / len(values)
