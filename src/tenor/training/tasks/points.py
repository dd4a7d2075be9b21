"""The points task: points on four interleaved spirals, a small dense network, cross-entropy. It needs no data."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from tenor.evaluation.metrics import Metrics, measure
from tenor.evaluation.scores import Scores
from tenor.groups import Group
from tenor.models.batch import Batch
from tenor.models.deep.masks import sample_keys
from tenor.models.dense import DenseClassifier, initialise_dense
from tenor.store.order import Order
from tenor.training.batch import TrainBatch
from tenor.training.settings import TrainSettings
from tenor.training.tasks.base import CardText, Task
from tenor.training.tasks.losses import make_objective, parse_weights
from tenor.training.tasks.spirals import NUM_CLASSES, bayes_accuracy, make_points

SIZES = {"train": 30_000, "valid": 4_000, "test": 6_000}
CLASSES = tuple(f"spiral {number + 1}" for number in range(NUM_CLASSES))


class Points(Task):
    """40,000 points, which depend on the seed. A point counts as two tokens, its coordinates."""

    def __init__(self, settings: TrainSettings) -> None:
        self.settings = settings
        points, labels = make_points(sum(SIZES.values()), settings.seed)
        bounds = np.cumsum(list(SIZES.values()))[:-1]
        parts = zip(np.split(points, bounds), np.split(labels, bounds), strict=True)
        self.splits = dict(zip(SIZES, parts, strict=True))
        lengths = np.full(SIZES["train"], points.shape[1], dtype=np.int32)
        self.order = Order(lengths, settings.batch_size, settings.seed)
        counts = tuple(np.bincount(self.splits["train"][1], minlength=NUM_CLASSES).tolist())
        weights = parse_weights(settings.class_weights, counts)
        self.objective = make_objective(settings.loss, NUM_CLASSES, weights)

    @classmethod
    def make(cls, data: Path, settings: TrainSettings, run: Path | None) -> Task:
        return cls(settings)

    @property
    def known(self) -> dict[str, float]:
        return {"bayes_accuracy": bayes_accuracy()}

    def make_model(self) -> DenseClassifier:
        model = DenseClassifier(2, self.settings.hidden, NUM_CLASSES)
        initialise_dense(model, self.settings.seed)
        return model

    def load(self, epoch: int, k: int, own: slice) -> TrainBatch:
        rows = self.order.batch(epoch, k)
        points, labels = self.splits["train"]
        return TrainBatch(
            inputs=_columns(points, rows[own]),
            lengths=torch.full((len(rows[own]),), points.shape[1]),
            keys=sample_keys(self.settings.seed, epoch, rows[own]),
            labels=torch.from_numpy(labels[rows[own]].astype(np.int64)),
            global_weight=self.objective.total_weight(labels[rows]),
            num_micro_batches=self.settings.accumulate,
        )

    def measure(self, model: nn.Module, split: str, group: Group) -> Metrics | None:
        return measure(self.score(model, split, group), CLASSES)

    @torch.inference_mode()
    def score(self, model: nn.Module, split: str, group: Group) -> Scores:
        model.eval()
        points, labels = self.splits[split]
        mine = np.arange(group.rank, len(labels), group.size)
        lengths, keys = torch.full((len(mine),), points.shape[1]), np.zeros(len(mine), np.uint64)
        batch = Batch(_columns(points, mine), lengths, keys)
        logits = model(batch.to(next(model.parameters()).device))
        own = logits.softmax(1).float().cpu()
        every = group.gather(own.flatten()).numpy().reshape(-1, NUM_CLASSES)
        places = np.argsort(np.concatenate([np.arange(r, len(labels), group.size) for r in range(group.size)]))
        total = Scores()
        total.add(every[places], labels)
        return total

    def describe(self) -> dict[str, Any]:
        model = {"inputs": 2, "hidden": self.settings.hidden, "classes": NUM_CLASSES}
        return {"model": model, "classes": list(CLASSES), **self.known}

    def card(self) -> CardText:
        facts = f"""A dense network with one hidden layer of {self.settings.hidden}, trained with tenor to tell
points on {len(CLASSES)} interleaved spirals apart.
"""
        use = f"The best possible classifier reaches an accuracy of\n{bayes_accuracy():.4f}.\n"
        return CardText(f"Points on {len(CLASSES)} spirals", facts, use)


def _columns(points: NDArray[np.float32], rows: NDArray[np.int64]) -> Tensor:
    """Points as columns (coordinates, batch)."""
    return torch.from_numpy(points[rows].T.copy()).to(torch.get_default_dtype())
