"""Loading ahead: items in order, errors at the right item, and rows as in the store."""

from __future__ import annotations

import threading
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from helpers.training import SMALL, load_part, load_whole

from tenor.preparation.tokeniser.vocabulary import UNKNOWN
from tenor.training.loader import DEPTH, Ahead
from tenor.training.tasks.reviews import Reviews


def test_items_come_in_order_from_start_to_stop() -> None:
    with Ahead(lambda k: k * k, 3, 9) as items:
        assert list(items) == [9, 16, 25, 36, 49, 64]


def test_an_error_is_raised_after_the_items_before_it() -> None:
    def make(k: int) -> int:
        if k == 2:
            raise ValueError("two")
        return k

    with Ahead(make, 0, 5) as items:
        assert (next(items), next(items)) == (0, 1)
        with pytest.raises(ValueError, match="two"):
            next(items)


def test_only_a_few_items_are_made_ahead_and_a_consumer_may_leave() -> None:
    made, third = [], threading.Event()

    def make(k: int) -> int:
        made.append(k)
        if len(made) > DEPTH:
            third.set()
        return k

    with Ahead(make, 0, 1000) as items:
        assert next(items) == 0
        assert third.wait(10)
    assert len(made) <= DEPTH + 2  # in the queue, taken by the consumer, and waiting for room


@pytest.mark.parametrize("shares", [[1.0], [5.0, 2.0, 1.0], [1.0, 0.0, 3.0]])
def test_the_parts_of_a_batch_are_its_rows(shares: list[float], data: Path) -> None:
    task = Reviews(data, replace(SMALL, word_dropout=0.0))
    rows = task.order.batch(1, 4)
    found, labels = [], []
    for rank in range(len(shares)):
        batch = load_part(task, 1, 4, rank, np.array(shares))
        ids = batch.rows["deep.embedding"][batch.inputs].numpy()
        assert batch.inputs.shape[1] == len(batch) == len(batch.labels) == len(batch.keys)
        for column, length in enumerate(batch.lengths.tolist()):
            found.append(ids[:length, column].tolist())
            assert not ids[length:, column].any()  # padding is row 0
        labels += batch.labels.tolist()
    task.close()
    assert found == [task_row.tolist() for task_row in rows_of(data, rows)]
    assert labels == labels_of(data, rows)


def rows_of(data: Path, rows: np.ndarray) -> list[np.ndarray]:
    task = Reviews(data, SMALL)
    each = [task.train.gather(np.array([row]))[0] for row in rows]
    task.close()
    return each


def labels_of(data: Path, rows: np.ndarray) -> list[int]:
    task = Reviews(data, SMALL)
    labels: list[int] = task.train.labels[rows].tolist()
    task.close()
    return labels


def test_dropped_words_become_the_unknown_word(data: Path) -> None:
    task = Reviews(data, replace(SMALL, word_dropout=0.3, batch_size=512))
    ids = []
    for epoch in (0, 0, 1):
        batch = load_whole(task, epoch, 0)
        rows, lengths = batch.rows["deep.embedding"], batch.lengths.tolist()
        ids.append([rows[batch.inputs[:length, at]].numpy() for at, length in enumerate(lengths)])
    plain = rows_of(data, task.order.batch(0, 0))
    task.close()
    changed = np.concatenate([now != before for now, before in zip(ids[0], plain, strict=True)])
    replaced = np.concatenate(ids[0])[changed]
    known = np.concatenate(plain) != UNKNOWN
    assert (replaced == UNKNOWN).all()
    assert changed[known].mean() == pytest.approx(0.3, abs=0.02)  # of about 10,000 words
    assert all(np.array_equal(one, other) for one, other in zip(ids[0], ids[1], strict=True))
