"""Metrics against references written another way: pair by pair, row by row, and by hand."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tenor.errors import TrainingError, UsageError
from tenor.evaluation.metrics import Metrics, measure, pair_auc
from tenor.evaluation.scores import Scores

BINARY = ("negative", "positive")
# Few distinct values, so that ties are common.
CHANCES = st.sampled_from([0.0, 0.1, 0.25, 0.5, 0.5000001, 0.75, 0.9, 1.0])
ROWS = st.lists(st.tuples(CHANCES, st.integers(0, 1)), min_size=1, max_size=40)


def scored(probabilities: object, labels: object) -> Scores:
    scores = Scores()
    scores.add(np.asarray(probabilities, np.float32), np.asarray(labels))
    return scores


def brute_auc(chances: np.ndarray, own: np.ndarray) -> float | None:
    pairs = [(p, n) for p in chances[own] for n in chances[~own]]
    if not pairs:
        return None
    return sum(1.0 if p > n else 0.5 if p == n else 0.0 for p, n in pairs) / len(pairs)


def brute_class(label: int, true: list[int], said: list[int]) -> dict[str, float]:
    """Precision, recall and their harmonic mean, counted one row at a time."""
    tp = fp = fn = 0
    for t, s in zip(true, said, strict=True):
        if s == label and t == label:
            tp += 1
        elif s == label:
            fp += 1
        elif t == label:
            fn += 1
    precision = tp / (tp + fp) if tp + fp else 0.0
    recall = tp / (tp + fn) if tp + fn else 0.0
    f1 = 2 * precision * recall / (precision + recall) if precision + recall else 0.0
    return {"precision": precision, "recall": recall, "f1": f1, "rows": tp + fn}


def test_by_hand() -> None:
    # Two hits and one miss among the positives, three hits and two false alarms among the negatives.
    got = measure(scored([0.9, 0.8, 0.2, 0.1, 0.3, 0.4, 0.7, 0.6], [1, 1, 1, 0, 0, 0, 0, 0]), BINARY)
    assert got.rows == 8
    assert got.confusion == [[3, 2], [1, 2]]
    assert got.accuracy == 5 / 8
    assert got.per_class["positive"] == {"precision": 2 / 4, "recall": 2 / 3, "f1": 4 / 7, "rows": 3}
    assert got.per_class["negative"] == {"precision": 3 / 4, "recall": 3 / 5, "f1": 6 / 9, "rows": 5}
    assert got.f1_macro == pytest.approx((4 / 7 + 6 / 9) / 2, abs=1e-15)
    assert got.f1_weighted == pytest.approx((3 * 4 / 7 + 5 * 6 / 9) / 8, abs=1e-15)
    assert got.auc == pytest.approx((5 + 5 + 1) / 15, abs=1e-15)
    given = [0.9, 0.8, 0.2, 0.9, 0.7, 0.6, 0.3, 0.4]
    assert got.log_loss == pytest.approx(-sum(map(math.log, given)) / 8, rel=1e-6)
    assert got.majority_baseline == {
        "accuracy": 5 / 8,
        "f1_macro": 10 / 13 / 2,
        "f1_weighted": 10 / 13 * 5 / 8,
        "auc": 0.5,
        "class": "negative",
    }


def test_true_negatives_do_not_move_f1() -> None:
    few = measure(scored([0.9, 0.2, 0.8], [1, 1, 0]), BINARY)
    many = measure(scored([0.9, 0.2, 0.8] + [0.0] * 1000, [1, 1, 0] + [0] * 1000), BINARY)
    assert few.per_class["positive"]["f1"] == many.per_class["positive"]["f1"] == 0.5


@given(ROWS)
def test_binary_matches_counting_pairs_and_rows(rows: list[tuple[float, int]]) -> None:
    chances = np.array([p for p, _ in rows], np.float32)
    labels = np.array([t for _, t in rows])
    got = measure(scored(chances, labels), BINARY)
    said = [int(p > 0.5) for p in chances]
    assert got.auc == pytest.approx(brute_auc(chances, labels == 1), abs=1e-12)
    for label, name in enumerate(BINARY):
        assert got.per_class[name] == pytest.approx(brute_class(label, labels.tolist(), said), abs=1e-12)
    assert got.accuracy == sum(s == t for s, t in zip(said, labels, strict=True)) / len(rows)


@given(st.integers(3, 5), st.integers(1, 60), st.integers(0, 2**32 - 1))
def test_many_classes_match_counting(num_classes: int, rows: int, seed: int) -> None:
    rng = np.random.default_rng(seed)
    chances = rng.integers(0, 6, (rows, num_classes)).astype(np.float32)
    labels = rng.integers(0, num_classes, rows)
    names = [f"class {i}" for i in range(num_classes)]
    got = measure(scored(chances, labels), names)
    said = [max(range(num_classes), key=lambda c: (row[c], -c)) for row in chances]
    each = [brute_class(c, labels.tolist(), said) for c in range(num_classes)]
    occurring = [e["f1"] for c, e in enumerate(each) if c in labels or c in said]
    assert got.f1_macro == pytest.approx(sum(occurring) / len(occurring), abs=1e-12)
    assert got.f1_weighted == pytest.approx(sum(e["f1"] * e["rows"] for e in each) / rows, abs=1e-12)
    areas = [a for c in range(num_classes) if (a := brute_auc(chances[:, c], labels == c)) is not None]
    assert got.auc == (pytest.approx(sum(areas) / len(areas), abs=1e-12) if areas else None)
    cells = [
        [sum(t == i and s == j for t, s in zip(labels, said, strict=True)) for j in range(num_classes)]
        for i in range(num_classes)
    ]
    assert got.confusion == cells


@given(ROWS, st.integers(1, 7), st.randoms(use_true_random=False))
def test_merging_in_any_order_and_split_gives_the_same_bits(rows, num_workers, random) -> None:  # type: ignore[no-untyped-def]
    whole = measure(scored(*zip(*rows, strict=True)), BINARY)
    random.shuffle(rows)
    parts = [
        scored(*zip(*part, strict=True)) if (part := rows[w::num_workers]) else Scores() for w in range(num_workers)
    ]
    merged = Scores()
    for part in parts:
        merged.add(*part.arrays())
    assert measure(merged, BINARY) == whole


def test_auc_keeps_float32_neighbours_apart() -> None:
    low = np.float32(0.3)
    high = np.nextafter(low, np.float32(1))
    assert pair_auc(np.array([high], np.float32), np.array([low], np.float32)) == 1.0
    assert pair_auc(np.array([low], np.float32), np.array([low], np.float32)) == 0.5


def test_two_columns_are_the_same_as_one() -> None:
    positive = np.array([0.9, 0.4, 0.6, 0.5], np.float32)
    labels = [1, 0, 0, 1]
    assert measure(scored(np.stack([1 - positive, positive], 1), labels), BINARY) == measure(
        scored(positive, labels), BINARY
    )


def test_one_class_only_has_no_auc() -> None:
    got = measure(scored([0.9, 0.1], [1, 1]), BINARY)
    assert got.auc is None
    assert got.majority_baseline["accuracy"] == 1.0
    assert isinstance(got, Metrics)
    assert got.as_dict()["confusion"] == [[0, 0], [1, 1]]


def test_a_reused_buffer_does_not_change_what_was_added() -> None:
    buffer = np.array([0.9, 0.1], np.float32)
    scores = Scores()
    scores.add(buffer, np.array([1, 0]))
    buffer[:] = 0.0
    assert measure(scores, BINARY).accuracy == 1.0
    assert len(scores) == 2


@pytest.mark.parametrize(
    ("probabilities", "labels", "error"),
    [
        ([0.5, float("nan")], [0, 1], TrainingError),
        ([0.5], [0, 1], UsageError),
        ([[[0.5]]], [0], UsageError),
    ],
)
def test_bad_batches_are_refused(probabilities: list[float], labels: list[int], error: type[Exception]) -> None:
    with pytest.raises(error):
        scored(probabilities, labels)


@pytest.mark.parametrize(
    ("probabilities", "labels", "classes"),
    [
        ([], [], BINARY),
        ([0.5], [2], BINARY),
        ([0.5], [-1], BINARY),
        ([0.5], [0], ("a", "b", "c")),
        ([0.5], [0], ("a",)),
    ],
)
def test_scores_that_do_not_fit_are_refused(probabilities: list[float], labels: list[int], classes: tuple[str]) -> None:
    with pytest.raises(UsageError):
        measure(scored(probabilities, np.array(labels, int)), classes)


def test_scores_of_different_widths_do_not_merge() -> None:
    scores = scored([0.5], [0])
    with pytest.raises(UsageError, match="cannot be merged"):
        scores.add([[0.2, 0.3, 0.5]], [2])
