"""The task of the reviews: prepared data, the recurrent classifier, its loss and metrics."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import nn

from tenor.errors import TrainingError, UsageError
from tenor.evaluation.metrics import Metrics, measure
from tenor.evaluation.scores import Scores
from tenor.models.batch import Batch
from tenor.models.classifier import ModelSpec, RecurrentClassifier, initialise
from tenor.models.inference import padded, probabilities
from tenor.models.masks import sample_keys, uniform
from tenor.preparation.vocabulary import FIRST_WORD, Vocabulary
from tenor.store.manifest import Manifest
from tenor.store.order import Order, split
from tenor.store.reader import open_split
from tenor.training.groups import Group
from tenor.training.losses import balanced_weights, make_objective
from tenor.training.pretrained import read_vectors
from tenor.training.settings import TrainSettings

UNKNOWN = 1
WORD_STREAM = 1 << 20  # of the masks: apart from the layers' streams
EVALUATION_BATCH = 256


class Reviews:
    def __init__(self, data: Path, settings: TrainSettings) -> None:
        self.data = data
        self.manifest = Manifest.load(data)
        self.settings = settings
        self.vocabulary: Path | None = data / "vocab.json"
        self.known: dict[str, float] = {}
        counts = self.manifest.splits["train"].class_counts
        if sum(count > 0 for count in counts) < 2:
            held = dict(zip(self.manifest.classes, counts, strict=True))
            raise TrainingError(
                f"the training rows hold one class only ({held})", where=data, remedy="prepare data with both classes"
            )
        self.splits = {name: open_split(data, name, verify=False) for name in self.manifest.splits}
        self.train = self.splits["train"]
        self.order = Order(self.train.lengths, settings.batch_size, settings.seed)
        self.objective = make_objective(settings.loss, len(counts), parse_weights(settings.class_weights, counts))
        self.spec = ModelSpec(
            vocab_size=self.manifest.vocab_size,
            num_classes=len(self.manifest.classes),
            cell=settings.cell,
            embedding_dim=settings.embedding_dim,
            hidden=settings.hidden,
            layers=settings.layers,
            bidirectional=settings.bidirectional,
            pooling=settings.pooling,
            dropout=settings.dropout,
        )

    def make_model(self) -> nn.Module:
        model = RecurrentClassifier(self.spec)
        initialise(model, self.settings.seed)
        if self.settings.embeddings:
            self._borrow_vectors(model, Path(self.settings.embeddings))
        return model

    def _borrow_vectors(self, model: RecurrentClassifier, file: Path) -> None:
        words = Vocabulary.load(self.data / "vocab.json").words
        places, vectors = read_vectors(file, words, self.spec.embedding_dim)
        table = model.embedding.weight
        with torch.no_grad():
            table[places + FIRST_WORD] = torch.from_numpy(vectors).to(table.dtype)

    def load(self, epoch: int, k: int, rank: int, shares: NDArray[np.float64]) -> Batch:
        """Every rank reads the whole global batch, which is cheap, and so knows all the rows that the step touches."""
        rows = self.order.batch(epoch, k)
        tokens, lengths = self.train.gather(rows)
        keys = sample_keys(self.settings.seed, epoch, rows)
        if self.settings.word_dropout:
            tokens = np.where(self._dropped(keys, lengths), UNKNOWN, tokens)
        touched = np.zeros(self.spec.vocab_size, dtype=bool)
        touched[tokens] = True
        touched[0] = True  # padding
        place = np.cumsum(touched) - 1
        own = split(lengths, shares)[rank]
        ends = np.cumsum(lengths)
        start = ends[own.start - 1] if own.start else 0
        stop = ends[own.stop - 1] if own.stop else 0
        return Batch(
            tokens=padded(place[tokens[start:stop]], lengths[own]),
            lengths=torch.from_numpy(lengths[own].astype(np.int64)),
            labels=torch.from_numpy(self.train.labels[rows[own]].astype(np.int64)),
            keys=keys[own],
            rows=torch.from_numpy(np.flatnonzero(touched)),
            num_global=len(rows),
            num_pieces=self.settings.accumulate,
        )

    def _dropped(self, keys: NDArray[np.uint64], lengths: NDArray[np.int32]) -> NDArray[np.bool_]:
        noise = uniform(keys, WORD_STREAM, int(lengths.max()))  # (batch, time)
        real = np.arange(noise.shape[1]) < lengths[:, None]
        return noise[real] < self.settings.word_dropout

    def measure(self, model: nn.Module, split: str, group: Group) -> Metrics | None:
        part = self.splits[split]
        if len(part) == 0:
            return None
        rows = np.argsort(part.lengths, kind="stable")
        chunks = [rows[at : at + EVALUATION_BATCH] for at in range(0, len(rows), EVALUATION_BATCH)]
        mine = np.concatenate([np.empty(0, np.int64), *chunks[group.rank :: group.size]])
        scores = [probabilities(model, *part.gather(chunk)) for chunk in chunks[group.rank :: group.size]]
        width = self.spec.num_outputs
        own = torch.from_numpy(
            np.concatenate([np.empty((0, width), np.float32), *(s.reshape(-1, width) for s in scores)])
        )
        every = group.gather(own.flatten()).numpy().reshape(-1, width)
        labels = group.gather(torch.from_numpy(part.labels[mine].astype(np.int64))).numpy()
        total = Scores()
        total.add(every[:, 0] if width == 1 else every, labels)
        return measure(total, self.manifest.classes)

    def describe(self) -> dict[str, Any]:
        return {
            "model": self.spec.as_dict(),
            "classes": list(self.manifest.classes),
            "labels": self.manifest.labels,
            "tokeniser": self.manifest.tokeniser,
            "max_length": self.manifest.max_length,
            "data_sha256": self.manifest.sha256,
            "vocab_sha256": self.manifest.vocab_sha256,
        }

    def close(self) -> None:
        for part in self.splits.values():
            part.close()


def parse_weights(text: str, class_counts: tuple[int, ...]) -> list[float]:
    """`none`, `auto`, or one number a class."""
    if text == "none":
        return [1.0] * len(class_counts)
    if text == "auto":
        return balanced_weights(class_counts)
    try:
        weights = [float(part) for part in text.split(",")]
    except ValueError:
        weights = []
    if len(weights) != len(class_counts) or not all(0 <= w < float("inf") for w in weights) or sum(weights) == 0:
        raise UsageError(
            f"--class-weights cannot be {text!r}",
            remedy=f"give auto, none, or {len(class_counts)} numbers with commas between",
        )
    return weights
