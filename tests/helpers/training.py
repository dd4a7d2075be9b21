"""Short training runs for tests, and what they logged."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
from safetensors.numpy import load_file

import tenor

SMALL = tenor.TrainSettings(
    workers="1", threads=1, hidden=8, embedding_dim=8, batch_size=32, epochs=2, dropout=0.2, word_dropout=0.1
)


def run(data: Path, out: Path, **changes: Any) -> dict[str, Any]:
    """Train with small settings; the result."""
    return tenor.train(data, out, replace(SMALL, **changes)).as_dict()


def events(run: Path, kind: str = "step") -> list[dict[str, Any]]:
    lines = (run / "metrics.jsonl").read_text("utf-8").splitlines()
    return [event for event in map(json.loads, lines) if event["event"] == kind]


def losses(run: Path) -> np.ndarray:
    return np.array([event["loss"] for event in events(run)])


def weights(run: Path) -> dict[str, np.ndarray]:
    return load_file(run / "model.safetensors")
