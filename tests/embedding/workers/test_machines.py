"""Machines start from the same tables, average them, and tell each other of signals."""

from __future__ import annotations

from contextlib import closing

import numpy as np
import pytest
from helpers.together import Seat, together

from tenor.embedding.workers import machines as module
from tenor.embedding.workers.checkpoints import SavedProgress
from tenor.embedding.workers.machines import Machines, Round, scaled_rate
from tenor.embedding.workers.tables import Tables
from tenor.errors import UsageError
from tenor.groups import Alone

SIZE, SHAPE = 3, (7, 5, 4, 1)  # inputs, words, width, workers
NOTHING = SavedProgress(0, 0.0, 0.0, 0.0)


def numbers(rank: int, height: int) -> np.ndarray:
    return np.random.default_rng([rank, height]).normal(size=(height, SHAPE[2])).astype(np.float32)


def test_the_first_machine_gives_its_tables_and_progress_to_all(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "PIECE_BYTES", 40)  # several pieces

    def act(seat: Seat) -> tuple[SavedProgress, list[np.ndarray]]:
        with closing(Tables(*SHAPE)) as tables:
            for table in tables.both:
                table[:] = numbers(seat.rank, len(table))
            done = SavedProgress(12, 3.5, 7.0, 1.25) if seat.rank == 0 else NOTHING
            return Machines(seat, tables).start_from(done), [table.copy() for table in tables.both]

    for done, tables in together(SIZE, act):
        assert done == SavedProgress(12, 3.5, 7.0, 1.25)
        for table in tables:
            np.testing.assert_array_equal(table, numbers(0, len(table)))


def test_a_round_ends_with_the_mean_of_the_tables(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "PIECE_BYTES", 40)

    def act(seat: Seat) -> tuple[Round, list[np.ndarray]]:
        with closing(Tables(*SHAPE)) as tables:
            for table in tables.both:
                table[:] = numbers(seat.rank, len(table))
            ended = Machines(seat, tables).end_round(1.0 + seat.rank, 10.0, 15 * (seat.rank == 1))
            return ended, [table.copy() for table in tables.both]

    for ended, tables in together(SIZE, act):
        assert ended == Round(6.0, 30.0, 15)
        for table in tables:
            mean = np.mean([numbers(rank, len(table)) for rank in range(SIZE)], axis=0)
            np.testing.assert_allclose(table, mean, rtol=1e-6, atol=1e-7)


def test_a_machine_alone_keeps_its_tables() -> None:
    with closing(Tables(*SHAPE)) as tables:
        tables.inputs[:] = numbers(0, len(tables.inputs))
        alone = Machines(Alone(), tables)
        assert alone.start_from(NOTHING) is NOTHING and alone.end_round(1.0, 2.0, 15) == Round(1.0, 2.0, 15)
        np.testing.assert_array_equal(tables.inputs, numbers(0, len(tables.inputs)))


def test_machines_with_other_settings_are_refused() -> None:
    def act(seat: Seat) -> None:
        with closing(Tables(*SHAPE)) as tables:
            Machines(seat, tables).check_same("other" if seat.rank == 2 else "same")

    with pytest.raises(UsageError, match="rank 2 has other settings or another text than rank 0"):
        together(SIZE, act)


def test_machines_learn_faster_together_up_to_a_limit() -> None:
    assert [scaled_rate(0.03, count) for count in (1, 2, 3, 4)] == pytest.approx([0.03, 0.06, 0.09, 0.1])
    assert scaled_rate(0.5, 1) == scaled_rate(0.5, 2) == 0.5  # asked for, so neither raised nor lowered
