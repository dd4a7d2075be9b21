"""Scenario `pretrained`: few labels, paired seeds and the gain of learned vectors. Training is replaced by a fake."""

from __future__ import annotations

import csv
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

import tenor
from tenor.bench.scenarios import pretrained
from tenor.bench.settings import BenchSettings
from tenor.progress import SILENT


def test_learned_vectors_are_compared_with_random_ones(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    trained: list[tenor.TrainSettings] = []
    learned: dict[str, int] = {}

    def fake_embed(data: Path, out: Path, settings: tenor.EmbedSettings) -> None:
        assert settings.dim == pretrained.MODELS["deep"].embedding_dim
        learned[str(out)] = settings.seed

    def fake_train(data: Path, out: Path, settings: tenor.TrainSettings) -> Any:
        trained.append(settings)
        assert settings.embeddings == "none" or learned[settings.embeddings] == settings.seed
        gain = 0.04 if settings.embeddings != "none" else 0.0
        accuracy = (0.7 if settings.model == "deep" else 0.8) + gain + 0.01 * settings.seed
        return SimpleNamespace(values={"valid": {"accuracy": accuracy, "auc": 0.9}})

    monkeypatch.setattr(pretrained, "prepare_few_labels", lambda folder: folder)
    monkeypatch.setattr(pretrained, "embed", fake_embed)
    monkeypatch.setattr(pretrained, "train", fake_train)
    result = pretrained.run(BenchSettings(repeats=3, epochs=2), tmp_path, SILENT)
    points = {row["name"]: row["points"] for row in result.rows}
    assert points == pytest.approx(
        {"deep-random": 0.0, "deep-learned": 4.0, "default-random": 0.0, "default-learned": 4.0}
    )
    assert result.rows[0]["mean_accuracy"] == pytest.approx(0.71)
    assert len(trained) == 12 and {settings.epochs for settings in trained} == {2}
    kinds = {(settings.model, settings.embeddings == "none", settings.seed) for settings in trained}
    assert kinds == {(m, r, s) for m in ("deep", tenor.TrainSettings().model) for r in (True, False) for s in range(3)}


def test_most_reviews_lose_their_label(tmp_path: Path) -> None:
    rows = [[f'"text" {n},\nmore', str(n % 2)] for n in range(50)]
    with (tmp_path / "in.csv").open("w", newline="") as file:
        csv.writer(file).writerows([["text", "label"], *rows])
    pretrained.remove_labels(tmp_path / "in.csv", tmp_path / "out.csv", 20)
    with (tmp_path / "out.csv").open(newline="") as file:
        head, *found = csv.reader(file)
    assert head == ["text", "label"] and [text for text, _ in found] == [text for text, _ in rows]
    labels = [label for _, label in found]
    assert sum(bool(label) for label in labels) == 20
    assert all(label in ("", own) for label, (_, own) in zip(labels, rows, strict=True))
