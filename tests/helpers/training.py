"""Short training runs for tests, and readers for what they logged."""

from __future__ import annotations

import contextlib
import json
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from helpers.processes import kept_handlers
from numpy.typing import NDArray
from safetensors.numpy import load_file

import tenor
from tenor.training.batch import TrainBatch, divide
from tenor.training.tasks.base import Task

SMALL = tenor.TrainSettings(
    workers=1,
    threads=1,
    model="wide-deep",
    ngrams=3,
    characters=0,
    ngram_bits=12,
    wide_lr=1.0,
    cell="lstm",
    embeddings="none",
    embedding_dim=8,
    hidden=8,
    layers=1,
    bidirectional=False,
    pooling="max-mean",
    dropout=0.2,
    input_dropout=0.2,
    word_dropout=0.1,
    window=3,
    label_smoothing=0.0,
    vector_epochs=1,
    preset="default",
    batch_size=32,
    epochs=2,
    lr=2e-3,
)


def run(data: Path, out: Path, **changes: Any) -> dict[str, Any]:
    """Train with small settings and return the result. A single worker trains in this process, which saves a start."""
    settings = replace(SMALL, **changes)
    with as_only_rank() if str(settings.workers) == "1" else contextlib.nullcontext():
        return tenor.train(data, out, settings).as_dict()


@contextlib.contextmanager
def as_only_rank() -> Iterator[None]:
    """Let `tenor.train` find that a launcher has started this process as its only rank."""
    threads, kind = torch.get_num_threads(), torch.get_default_dtype()
    with kept_handlers(), pytest.MonkeyPatch.context() as patch:
        for name, value in {"RANK": "0", "WORLD_SIZE": "1", "LOCAL_RANK": "0", "LOCAL_WORLD_SIZE": "1"}.items():
            patch.setenv(name, value)
        try:
            yield
        finally:
            torch.set_num_threads(threads)
            torch.set_default_dtype(kind)


def load_part(task: Task, epoch: int, k: int, rank: int, shares: Sequence[float] | NDArray[np.float64]) -> TrainBatch:
    """The samples of one worker in global batch k, where the workers have these shares."""
    return task.load(epoch, k, divide(task.order, epoch, k, np.asarray(shares))[rank])


def load_whole(task: Task, epoch: int, k: int) -> TrainBatch:
    """A whole global batch."""
    return load_part(task, epoch, k, 0, [1.0])


def events(run: Path, kind: str = "step") -> list[dict[str, Any]]:
    lines = (run / "metrics.jsonl").read_text("utf-8").splitlines()
    return [event for event in map(json.loads, lines) if event["event"] == kind]


def losses(run: Path) -> np.ndarray:
    return np.array([event["loss"] for event in events(run)])


def weights(run: Path) -> dict[str, np.ndarray]:
    return load_file(run / "model.safetensors")
