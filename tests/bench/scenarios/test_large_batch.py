"""Scenario `large-batch`: the settings and seeds of its rows. Training is replaced by a fake."""

from __future__ import annotations

from pathlib import Path

import pytest

import tenor
from tenor.bench.scenarios import large_batch
from tenor.bench.settings import BenchSettings
from tenor.bench.step_rates import Steps
from tenor.progress import SILENT


def test_seeds_are_paired_and_points_come_from_the_means(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    trained: list[tenor.TrainSettings] = []
    monkeypatch.setattr(large_batch, "train", lambda data, out, settings: trained.append(settings))

    def accuracy(run: Path) -> tuple[Steps, list[tuple[float, float]]]:
        last = trained[-1]
        return Steps(), [(1.0, 0.1), (2.0, 0.8 + 0.01 * last.seed - (0.05 if last.batch_size > 256 else 0.0))]

    monkeypatch.setattr(large_batch, "read_run", accuracy)
    result = large_batch.run(BenchSettings(repeats=3, data="prepared"), tmp_path, SILENT)
    for row in result.rows:
        assert row["spread"]["valid_accuracy"]["values"][0] < row["spread"]["valid_accuracy"]["values"][2]
        assert row["points"] == pytest.approx(-5.0 if row["batch_size"] == 512 else 0.0)
    assert [settings.seed for settings in trained if settings.batch_size == 32] == [0, 1, 2]
    assert result.rows[0]["mean_accuracy"] == pytest.approx(0.81)


def test_only_some_rows_scale_the_learning_rate() -> None:
    rows = large_batch.rows()
    assert list(rows) == ["reference", "x8", "x8-without", "x16", "x16-without"]
    assert [row.batch_size // 32 for row in rows.values()] == [1, 8, 8, 16, 16]
    assert [row.reference_batch for row in rows.values()] == [0, 32, 0, 32, 0]
    assert len({(row.lr, row.epochs, row.hidden, row.cell) for row in rows.values()}) == 1
