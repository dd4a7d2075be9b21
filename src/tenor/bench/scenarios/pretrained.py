"""Scenario `pretrained`: what word vectors from unlabelled reviews gain for a classifier with few labelled ones.

2,000 of the demo reviews keep their label for training and twice as many for validation; the others lose it. Word
vectors learn from all reviews but those for validation and test. The deep part alone and the default model then train
for the same epochs, from random vectors (`--embeddings none`) and from the learned ones. Seeds are paired: the n-th
repeat of every row has the same seed, also for its word vectors. `points` is the difference between the mean validation
accuracy of a row and of the same model with random vectors.
"""

from __future__ import annotations

import csv
import itertools
import random
import statistics
import tempfile
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from tenor.bench.demo_reviews import find_demo_reviews
from tenor.bench.measuring import Contender, measure
from tenor.bench.results import Result
from tenor.bench.settings import BenchSettings
from tenor.embedding.embed import embed
from tenor.embedding.settings import EmbedSettings
from tenor.preparation.job.prepare import prepare
from tenor.preparation.settings import PrepareSettings
from tenor.progress import Progress
from tenor.training.launching.launch import train
from tenor.training.settings import NO_VECTORS, TrainSettings

OPTIONS = ("epochs", "rows")
LABELLED = 2000  # reviews to train on
PREPARE = PrepareSettings(
    negative="0", positive="1", vocab_size=20_000, valid_share=0.6, test_share=0.1, unlabelled=True
)
DIM = 100  # numbers of a word vector
MODELS = {
    "deep": TrainSettings(model="deep", embedding_dim=DIM, embeddings=NO_VECTORS),
    "default": TrainSettings(embedding_dim=DIM, embeddings=NO_VECTORS),
}
RANDOM, LEARNED = "random", "learned"
FACTS = ("model", "start")


def run(settings: BenchSettings, folder: Path, progress: Progress) -> Result:
    """Measure the validation accuracy of each model from random and from learned word vectors."""
    data = prepare_few_labels(folder)
    known = {f"{model}-{start}": (model, start) for model in MODELS for start in (RANDOM, LEARNED)}
    contenders = [
        Contender(
            name, _run_with_next_seed(data, *known[name], settings.epochs), dict(zip(FACTS, known[name], strict=True))
        )
        for name in settings.chosen(known)
    ]
    result = measure("pretrained", contenders, settings.repeats, settings.warmups, progress)
    means = {row["name"]: statistics.fmean(row["spread"]["valid_accuracy"]["values"]) for row in result.rows}
    for row in result.rows:
        row["mean_accuracy"] = means[row["name"]]
        other = means.get(f"{row['model']}-{RANDOM}")
        row["points"] = None if other is None else 100.0 * (row["mean_accuracy"] - other)
    return result


def prepare_few_labels(folder: Path) -> Path:
    """Prepare the demo reviews, most of them without their label."""
    share = 1.0 - PREPARE.valid_share - PREPARE.test_share
    file = folder / "reviews.csv"
    remove_labels(find_demo_reviews(), file, round(LABELLED / share))
    prepare([file], folder / "data", PREPARE)
    return folder / "data"


def remove_labels(source: Path, out: Path, num_kept: int) -> None:
    """Copy a CSV file with the columns text and label; only `num_kept` rows, chosen at random, keep their label."""
    with source.open(encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file))
    kept = set(random.Random(0).sample(range(len(rows)), num_kept))
    with out.open("w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(["text", "label"])
        writer.writerows([row["text"], row["label"] if number in kept else ""] for number, row in enumerate(rows))


def _run_with_next_seed(data: Path, model: str, start: str, epochs: int) -> Callable[[], Mapping[str, float]]:
    seeds = itertools.count()

    def once() -> Mapping[str, float]:
        with tempfile.TemporaryDirectory(prefix="tenor-bench-") as scratch:
            chosen = replace(MODELS[model], epochs=epochs, seed=next(seeds), test=False)
            if start == LEARNED:
                vectors = Path(scratch) / "vectors"
                embed(data, vectors, EmbedSettings(dim=DIM, seed=chosen.seed))
                chosen = replace(chosen, embeddings=str(vectors))
            valid: dict[str, Any] = train(data, Path(scratch) / "run", chosen).values["valid"]
            return {f"valid_{name}": float(valid[name]) for name in ("accuracy", "auc")}

    return once
