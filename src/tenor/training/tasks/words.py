"""The words task: windows of a text, two tables of word vectors, skip-gram with negative sampling.

`tenor embed` learns such vectors much faster. This task exists to compare strategies: it has small steps, and tables of
which a step touches few rows. A prediction is right if the model tells a neighbour from a noise word.
"""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from tenor.embedding.kernels.windows import BREAK
from tenor.embedding.planted import plant
from tenor.embedding.sources import TextWords, read_words
from tenor.embedding.vectors import Vectors
from tenor.errors import TrainingError
from tenor.evaluation.metrics import Metrics, measure
from tenor.evaluation.scores import Scores
from tenor.groups import Group
from tenor.models.batch import Batch
from tenor.models.deep.masks import sample_keys
from tenor.models.skipgram import NONE, SkipGram, initialise_skipgram, window_loss
from tenor.store.order import Order
from tenor.training.batch import TrainBatch
from tenor.training.settings import TrainSettings
from tenor.training.tasks.base import CardText, Task
from tenor.training.tasks.losses import Objective
from tenor.training.tasks.windows import make_windows

WINDOW, NUM_NOISE, SAMPLE, MIN_COUNT = 5, 5, 1e-4, 5
PLANTED_TEXTS, PLANTED_SAMPLE = 20_000, 0.0
HELD_OUT = 0.02  # of the windows at the end of the text for validation, and as many before them for the test
MOST_MEASURED, TOGETHER = 20_000, 2048  # windows of a split that are measured, and at a time
MEASURE_EPOCH = (1 << 32) - 1  # gives a measurement its own neighbours and noise words, always the same
CLASSES = ("noise", "neighbour")


class Words(Task):
    """A window counts as one sample. Without a text, a generated one is used, whose similarities are known."""

    def __init__(self, data: Path, settings: TrainSettings) -> None:
        self.settings = settings
        self.counted, text, sample = _read(data)
        self.windows = make_windows(text, self.counted.counts, sample, WINDOW, NUM_NOISE, settings.seed)
        total, held = len(self.windows.middles), int(HELD_OUT * len(self.windows.middles))
        if not held:
            raise TrainingError(f"{total} windows are too few", where=data, remedy="give a text of 1,000 words or more")
        bounds = {
            "train": (0, total - 2 * held),
            "test": (total - 2 * held, total - held),
            "valid": (total - held, total),
        }
        self.splits = {name: np.arange(*bound) for name, bound in bounds.items()}
        height = 1 + NUM_NOISE + 2 * WINDOW
        self.order = Order(np.full(total - 2 * held, height, np.int32), settings.batch_size, settings.seed)
        self.objective = Objective(window_loss, torch.ones(1, dtype=torch.float64))

    @classmethod
    def make(cls, data: Path, settings: TrainSettings, run: Path | None) -> Task:
        return cls(data, settings)

    def make_model(self) -> SkipGram:
        model = SkipGram(len(self.counted.words), self.settings.embedding_dim, NUM_NOISE)
        initialise_skipgram(model, self.settings.seed)
        return model

    def load(self, epoch: int, k: int, own: slice) -> TrainBatch:
        """Every rank draws the words of the whole global batch, and so knows the rows that the step touches."""
        rows = self.order.batch(epoch, k)
        keys = sample_keys(self.settings.seed, epoch, rows)
        far, near = self.windows.sample(rows, keys)
        outputs, at_far = self._touched(far)
        inputs, at_near = self._touched(near)
        ids = np.concatenate([at_far, at_near])[:, own]
        count = ids.shape[1]
        return TrainBatch(
            inputs=torch.from_numpy(ids),
            lengths=torch.full((count,), len(ids)),
            keys=keys[own],
            labels=torch.zeros(count, dtype=torch.int64),
            rows={"inputs": inputs, "outputs": outputs},
            global_weight=float(len(rows)),
            num_micro_batches=self.settings.accumulate,
        )

    def _touched(self, words: NDArray[np.int64]) -> tuple[Tensor, NDArray[np.int64]]:
        """The distinct words in rising order, and the position of each word among them."""
        is_touched = np.zeros(len(self.counted.words) + 1, bool)
        is_touched[words] = True  # NONE is the last place
        is_touched[NONE] = False
        position = np.cumsum(is_touched) - 1
        position[NONE] = NONE
        return torch.from_numpy(np.flatnonzero(is_touched)), position[words]

    @torch.inference_mode()
    def measure(self, model: nn.Module, split: str, group: Group) -> Metrics | None:
        """Tell each neighbour from one noise word."""
        model.eval()
        rows = self.splits[split][:MOST_MEASURED][group.rank :: group.size]
        parts = [self._chances(model, rows[at : at + TOGETHER]) for at in range(0, len(rows), TOGETHER)]
        every = group.gather(torch.cat([torch.empty(0), *parts])).numpy()
        total = Scores()
        total.add(every, np.tile([1, 0], len(every) // 2))
        return measure(total, CLASSES)

    def _chances(self, model: nn.Module, rows: NDArray[np.int64]) -> Tensor:
        """The chances of being a neighbour: of the word and of a noise word, for each neighbour of each window."""
        far, near = self.windows.sample(rows, sample_keys(0, MEASURE_EPOCH, rows))
        ids = torch.from_numpy(np.concatenate([far, near]))
        batch = Batch(ids, torch.full((len(rows),), len(ids)), np.zeros(len(rows), np.uint64))
        logits = model(batch.to(next(model.parameters()).device)).float().cpu()[:, :, :2]
        is_real = torch.from_numpy((near.T != NONE) & (far[:1] != far[1:2]).T)
        # With n noise words per neighbour, logits estimate log(odds / n); here there is one.
        return torch.sigmoid(logits[is_real] + math.log(NUM_NOISE)).flatten()

    def vectors(self, model: nn.Module) -> Vectors:
        """The word vectors of a model."""
        assert isinstance(model, SkipGram)
        return Vectors(self.counted.words, model.inputs.weight.detach().float().cpu().numpy())

    def describe(self) -> dict[str, Any]:
        model = {"num_words": len(self.counted.words), "dim": self.settings.embedding_dim, "num_noise": NUM_NOISE}
        return {"model": model, "classes": list(CLASSES), "text_sha256": self.counted.sha256}

    def card(self) -> CardText:
        facts = f"""Word vectors by skip-gram with {NUM_NOISE} noise words per window, trained with tenor.

- {len(self.counted.words):,} words of width {self.settings.embedding_dim}; {self.counted.total:,} words of text
"""
        return CardText(
            "Word vectors", facts, "The figures say how well the model distinguishes neighbours from noise words.\n"
        )


def _read(data: Path) -> tuple[TextWords, NDArray[np.int32], float]:
    """The vocabulary, the text as word numbers, and from which share of the text words are left out."""
    if not data.exists():  # its name was checked: the task generates its text
        planted = plant(PLANTED_TEXTS)
        text = np.insert(planted.texts, planted.texts.shape[1], BREAK, axis=1).ravel()
        counts = np.bincount(planted.texts.ravel(), minlength=len(planted.words))
        return TextWords(planted.words, counts, planted.texts.size), text, PLANTED_SAMPLE
    counted, blocks = read_words(data, MIN_COUNT, 0)
    try:
        text = np.concatenate([blocks.block(number) for number in range(blocks.num_blocks)])
    finally:
        blocks.close()
    return counted, text, SAMPLE
