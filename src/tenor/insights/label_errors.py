"""Suspected label errors: rows whose label a model does not believe that was trained on the other rows.

The run's own model may have seen the rows, labels included, so it cannot judge them. Each row is judged by a quick
model of the other folds; near-duplicates are in the same fold.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tenor.corpus.labels import NEUTRAL
from tenor.insights.linear import FOLDS, Labelled, cross_validated
from tenor.insights.row_store import RowStore

FEWEST_ROWS = 50  # labelled rows; with fewer, no model is worth a judgement
MOST_LISTED = 200_000
SHOWN_TEXTS = 100  # suspects whose text is listed too
SNIPPET = 300


def label_errors(
    rows: RowStore, first: NDArray[np.int64], classes: tuple[str, ...], share: float
) -> list[dict[str, Any]]:
    """The labelled rows whose label is least believable, most suspicious first.

    Args:
        rows: The rows.
        first: Of each row, the first row of its cluster of near-duplicates.
        classes: The names of the classes.
        share: The share of the labelled rows to list.

    Returns:
        For each row its file, line, label, the out-of-fold probability of that label, and the most likely label.
    """
    used = np.flatnonzero(rows.labels != NEUTRAL)
    if len(used) < FEWEST_ROWS or len(np.unique(rows.labels[used])) < 2:
        return []
    chances = out_of_fold(rows, first, used, len(classes))
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


def out_of_fold(
    rows: RowStore, first: NDArray[np.int64], used: NDArray[np.int64], num_classes: int
) -> NDArray[np.float32]:
    """(used rows, classes): probabilities by models that have not seen the row."""
    place_of = np.full(len(rows), -1, np.int64)
    place_of[used] = np.arange(len(used))
    folds = choose_folds(first)

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


def choose_folds(first: NDArray[np.int64]) -> NDArray[np.int8]:
    """A random fold for each cluster of near-duplicates, the same for all of its rows."""
    folds: NDArray[np.int8] = np.random.default_rng(0).integers(0, FOLDS, len(first), np.int8)[first]
    return folds
