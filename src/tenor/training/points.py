"""The task of the points: four interleaved spirals, the small dense network, cross-entropy. No prepared data needed."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import nn

from tenor.evaluation.metrics import Metrics, measure
from tenor.evaluation.scores import Scores
from tenor.models.batch import Batch
from tenor.models.dense import DenseClassifier, initialise_dense
from tenor.models.masks import sample_keys
from tenor.store.order import Order, split
from tenor.training.groups import Group
from tenor.training.losses import make_objective
from tenor.training.reviews import parse_weights
from tenor.training.settings import TrainSettings
from tenor.training.spirals import NUM_CLASSES, bayes_accuracy, make_points

SIZES = {"train": 30_000, "valid": 4_000, "test": 6_000}
CLASSES = tuple(f"spiral {number + 1}" for number in range(NUM_CLASSES))


class Points:
    """40,000 points; a point counts as two tokens, its coordinates. The seed fixes the points too."""

    vocabulary: Path | None = None

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

    @property
    def known(self) -> dict[str, float]:
        return {"bayes_accuracy": bayes_accuracy()}

    def make_model(self) -> nn.Module:
        model = DenseClassifier(2, self.settings.hidden, NUM_CLASSES)
        initialise_dense(model, self.settings.seed)
        return model

    def load(self, epoch: int, k: int, rank: int, shares: NDArray[np.float64]) -> Batch:
        rows = self.order.batch(epoch, k)
        own = rows[split(self.order.lengths[rows], shares)[rank]]
        return replace(self._batch("train", own, epoch), num_global=len(rows))

    def _batch(self, name: str, rows: NDArray[np.int64], epoch: int = 0) -> Batch:
        points, labels = self.splits[name]
        return Batch(
            tokens=torch.from_numpy(points[rows].T.copy()).to(torch.get_default_dtype()),
            lengths=torch.full((len(rows),), points.shape[1]),
            labels=torch.from_numpy(labels[rows].astype(np.int64)),
            keys=sample_keys(self.settings.seed, epoch, rows),
            num_pieces=self.settings.accumulate,
        )

    @torch.inference_mode()
    def measure(self, model: nn.Module, split: str, group: Group) -> Metrics | None:
        model.eval()
        mine = np.arange(group.rank, SIZES[split], group.size)
        batch = self._batch(split, mine)
        logits = model(batch.to(next(model.parameters()).device))
        own = logits.softmax(1).float().cpu()
        every = group.gather(own.flatten()).numpy().reshape(-1, NUM_CLASSES)
        total = Scores()
        total.add(every, group.gather(batch.labels).numpy())
        return measure(total, CLASSES)

    def describe(self) -> dict[str, Any]:
        model = {"inputs": 2, "hidden": self.settings.hidden, "classes": NUM_CLASSES}
        return {"model": model, "classes": list(CLASSES), **self.known}

    def close(self) -> None:
        pass
