"""Suspected label errors: rows whose label a model does not believe that was trained on the other rows.

The run's own model may have seen the rows, labels included, so it cannot judge them. Each row is judged by a quick
model of the other folds; rows with the same words are in the same fold.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tenor.compiled import compiled
from tenor.corpus.labels import NEUTRAL
from tenor.insights.linear import FOLDS, Labelled, cross_validated
from tenor.insights.row_store import RowStore

FEWEST_ROWS = 50  # labelled rows; with fewer, no model is worth a judgement
MOST_LISTED = 200_000
SHOWN_TEXTS = 100  # suspects whose text is listed too
SNIPPET = 300


def label_errors(rows: RowStore, classes: tuple[str, ...], share: float) -> list[dict[str, Any]]:
    """The labelled rows whose label is least believable, most suspicious first.

    Args:
        rows: The rows.
        classes: The names of the classes.
        share: The share of the labelled rows to list.

    Returns:
        For each row its file, line, label, the out-of-fold probability of that label, and the most likely label.
    """
    used = np.flatnonzero(rows.labels != NEUTRAL)
    if len(used) < FEWEST_ROWS or len(np.unique(rows.labels[used])) < 2:
        return []
    chances = out_of_fold(rows, used, len(classes))
    labels = rows.labels[used].astype(np.int64)
    own = chances[np.arange(len(used)), labels]
    most = min(MOST_LISTED, int(np.ceil(share * len(used))))
    order = np.argsort(own, kind="stable")[:most]
    listed = []
    for number, place in enumerate(order.tolist()):
        row = int(used[place])
        file, line = rows.place(row)
        values: dict[str, Any] = {
            "file": file,
            "line": line,
            "label": classes[labels[place]],
            "probability": float(own[place]),
            "predicted": classes[int(chances[place].argmax())],
        }
        if number < SHOWN_TEXTS:
            values["text"] = " ".join(rows.text(row).split())[:SNIPPET]
        listed.append(values)
    return listed


def out_of_fold(rows: RowStore, used: NDArray[np.int64], num_classes: int) -> NDArray[np.float32]:
    """(used rows, classes): probabilities by models that have not seen the row."""
    place_of = np.full(len(rows), -1, np.int64)
    place_of[used] = np.arange(len(used))
    folds = np.empty(len(rows), np.int8)
    for block in rows.blocks("words"):
        _choose_folds(block.values, np.cumsum(block.lengths), FOLDS, folds[block.rows])

    def blocks() -> Iterator[Labelled]:
        for numbers, block in rows.mixed_blocks("tokens", seed=0):
            chosen = place_of[numbers] >= 0
            own = numbers[chosen]
            yield Labelled(
                block.values if chosen.all() else block.values[np.repeat(chosen, block.lengths)],
                block.lengths[chosen],
                rows.labels[own].astype(np.int64),
                folds[own],
                place_of[own],
            )

    return cross_validated(blocks, len(used), num_classes)


@compiled
def _choose_folds(values: Any, ends: Any, num_folds: int, folds: Any) -> None:
    """A fold for each row, by the sum of a hash of its words: the order of the words does not matter."""
    start = 0
    for row in range(len(ends)):
        total = np.uint64(0)
        for at in range(start, ends[row]):
            state = (np.uint64(values[at]) + np.uint64(1)) * np.uint64(0x9E3779B97F4A7C15)
            total += (state ^ (state >> np.uint64(29))) * np.uint64(0xBF58476D1CE4E5B9)
        total = (total ^ (total >> np.uint64(32))) * np.uint64(0x94D049BB133111EB)
        folds[row] = (total >> np.uint64(33)) % np.uint64(num_folds)
        start = ends[row]
