"""Exact metrics from integer counts: the same to the bit in whatever order the scores were merged.

F1 is 2·TP / (2·TP + FP + FN); true negatives do not enter it. AUC is the share of (positive, negative) pairs that the
model puts in the right order, where a tie counts half. It equals the area under the ROC curve, without any binning.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tenor.errors import UsageError
from tenor.evaluation.calibration import ReliabilityBin, expected_calibration_error, reliability
from tenor.evaluation.decision import confidence, decide
from tenor.evaluation.scores import Scores


@dataclasses.dataclass(frozen=True)
class Metrics:
    """How good predictions are, beside a baseline that always predicts the most frequent class.

    Attributes:
        rows: Rows that were measured.
        accuracy: Share of the rows whose label is predicted.
        f1_macro: Mean of the F1 of all classes that occur.
        f1_weighted: Mean of the F1 of all classes, weighted by their rows.
        log_loss: Mean of −log(probability of the true class).
        auc: Share of the (positive, negative) pairs in the right order; None if only one class occurs.
        calibration_error: Expected calibration error: mean distance between probability and share that came true.
        threshold: What the probability of the second of two classes must exceed to be predicted; None for more classes.
        mean_absolute_error: Mean distance between predicted and true class if classes are numbers, such as stars.
        reliability: The bins behind it: low, high, rows, mean probability, and share that came true.
        per_class: Precision, recall, F1 and rows of each class.
        confusion: Rows by true class (first index) and predicted class (second index).
        majority_baseline: The same figures for the baseline, and its class.
    """

    rows: int
    accuracy: float
    f1_macro: float
    f1_weighted: float
    log_loss: float
    auc: float | None
    calibration_error: float
    threshold: float | None
    mean_absolute_error: float | None
    reliability: list[ReliabilityBin]
    per_class: dict[str, dict[str, float]]
    confusion: list[list[int]]
    majority_baseline: dict[str, Any]

    def as_dict(self) -> dict[str, Any]:
        """Return all figures as JSON values.

        >>> tenor.evaluate("run", "data").as_dict()["accuracy"]  # doctest: +SKIP
        0.871
        """
        return dataclasses.asdict(self)


@dataclasses.dataclass(frozen=True)
class Evaluation(Metrics):
    """The result of `tenor.evaluate`: metrics, and all rows accounted for: rows_read = rows + dropped + rejected.

    Attributes:
        rows_read: Rows that were read.
        dropped: Rows that were dropped, by reason, as `prepare` counts them.
        rejected: Rows that were rejected, by reason.
        abstain_below: The confidence below which the model gives no answer; 0 means that it always answers.
        coverage: Share of the rows that are answered.
        covered_accuracy: Share of the answered rows whose label is predicted; None if none is answered.
        train_rows: Rows that the model learned from; None if its run does not say.
    """

    rows_read: int
    dropped: dict[str, int]
    rejected: dict[str, int]
    abstain_below: float = 0.0
    coverage: float = 1.0
    covered_accuracy: float | None = None
    train_rows: int | None = None


def measure(scores: Scores, classes: Sequence[str]) -> Metrics:
    """Compute the metrics of scores.

    Args:
        scores: Probabilities and labels of all rows.
        classes: The name of each label.

    Raises:
        UsageError: There are no rows, or the scores do not fit the classes.
    """
    probabilities, labels = scores.arrays()
    _check(probabilities, labels, classes)
    confusion = count_confusion(labels, decide(probabilities, scores.threshold), len(classes))
    bins = reliability(probabilities, labels)
    return Metrics(
        rows=len(labels),
        **_summary(confusion),
        log_loss=_log_loss(probabilities, labels),
        auc=_area(probabilities, labels, len(classes)),
        calibration_error=expected_calibration_error(bins),
        threshold=scores.threshold if len(classes) == 2 else None,
        mean_absolute_error=_absolute_error(confusion, classes),
        reliability=bins,
        per_class=_per_class(confusion, classes),
        confusion=confusion.tolist(),
        majority_baseline=_majority(confusion, classes),
    )


def measure_covered(scores: Scores, abstain_below: float) -> dict[str, float | None]:
    """Coverage and accuracy of a model that only answers if the probability of its label is not below a limit."""
    probabilities, labels = scores.arrays()
    predicted = decide(probabilities, scores.threshold)
    answered = confidence(probabilities, predicted) >= abstain_below
    right = int((predicted == labels)[answered].sum())
    return {
        "abstain_below": abstain_below,
        "coverage": _share(int(answered.sum()), len(labels)),
        "covered_accuracy": right / int(answered.sum()) if answered.any() else None,
    }


def count_confusion(labels: NDArray[np.int64], predicted: NDArray[np.int64], num_classes: int) -> NDArray[np.int64]:
    """Number of rows, (num_classes, num_classes), by true label (first index) and predicted label (second index)."""
    cells = np.bincount(labels * num_classes + predicted, minlength=num_classes**2)
    return cells.reshape(num_classes, num_classes)


def pair_auc(positive: NDArray[np.float32], negative: NDArray[np.float32]) -> float | None:
    """The share of (positive, negative) pairs in the right order, where a tie counts half.

    Takes n·log n time. Counts are integers until the last division.

    Args:
        positive: Probabilities of the rows of the positive class.
        negative: Probabilities of all other rows.

    Returns:
        The share; None if there is no pair.
    """
    if not len(positive) or not len(negative):
        return None
    ordered = np.sort(negative)
    below = int(np.searchsorted(ordered, positive, side="left").sum(dtype=np.int64))
    not_above = int(np.searchsorted(ordered, positive, side="right").sum(dtype=np.int64))
    return (below + not_above) / (2 * len(positive) * len(negative))


def _log_loss(probabilities: NDArray[np.float32], labels: NDArray[np.int64]) -> float:
    """A probability of 0 counts as the smallest normal float32."""
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
    """Accuracy and averaged F1. The macro average is over the classes that occur as true or predicted labels."""
    true, predicted = confusion.sum(axis=1), confusion.sum(axis=0)
    f1 = _f1(confusion)
    rows = int(true.sum())
    return {
        "accuracy": int(confusion.trace()) / rows,
        "f1_macro": _mean(value for value, seen in zip(f1, true + predicted, strict=True) if seen),
        "f1_weighted": math.fsum(value * int(count) for value, count in zip(f1, true, strict=True)) / rows,
    }


def _f1(confusion: NDArray[np.int64]) -> list[float]:
    hits, true, predicted = confusion.diagonal(), confusion.sum(axis=1), confusion.sum(axis=0)
    return [_share(2 * int(h), int(t) + int(s)) for h, t, s in zip(hits, true, predicted, strict=True)]


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


def _absolute_error(confusion: NDArray[np.int64], classes: Sequence[str]) -> float | None:
    """The mean distance between predicted and true class; None if classes are not numbers."""
    try:
        values = np.array([float(name) for name in classes])
    except ValueError:
        return None
    return float((confusion * np.abs(values[:, None] - values)).sum() / confusion.sum())


def _majority(confusion: NDArray[np.int64], classes: Sequence[str]) -> dict[str, Any]:
    """The metrics of always predicting the most frequent class."""
    true = confusion.sum(axis=1)
    winner = int(true.argmax())
    always = np.zeros_like(confusion)
    always[:, winner] = true
    distance = _absolute_error(always, classes)
    stars = {} if distance is None else {"mean_absolute_error": distance}
    return {**_summary(always), "auc": 0.5, **stars, "class": classes[winner]}


def _check(probabilities: NDArray[np.float32], labels: NDArray[np.int64], classes: Sequence[str]) -> None:
    if not len(labels):
        raise UsageError("there are no rows to measure", remedy="give data with at least one labelled row")
    if len(classes) < 2 or probabilities.shape[1:] not in ([(), (2,)] if len(classes) == 2 else [(len(classes),)]):
        shape = probabilities.shape
        raise UsageError(
            f"probabilities of shape {shape} do not fit the classes {', '.join(classes)}",
            remedy="give one probability per row for two classes, or one per class",
        )
    if labels.min() < 0 or labels.max() >= len(classes):
        wrong = labels.min() if labels.min() < 0 else labels.max()
        raise UsageError(f"label {wrong} has no class", remedy=f"give labels from 0 to {len(classes) - 1}")


def _share(part: int, whole: int) -> float:
    return part / whole if whole else 0.0


def _mean(values: Iterable[float]) -> float:
    values = list(values)
    return math.fsum(values) / len(values)
