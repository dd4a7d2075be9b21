"""Scenario `large-batch`: what a larger batch costs in accuracy at equal epochs, with the recipe and without.

The demo reviews, a small LSTM, reference batch 32; eight and sixteen times that. Seeds are paired: the n-th repeat of
every row has the same first weights. The recipe scales the rate with the batch and warms it up; without it the rate
stays the reference's.
"""

from __future__ import annotations

import itertools
import statistics
import tempfile
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path

from tenor.bench.core import Contender, Result, measure
from tenor.bench.demo_reviews import prepare_demo_reviews
from tenor.bench.settings import BenchSettings
from tenor.bench.steady import read_run
from tenor.progress import Progress
from tenor.training.launch import train
from tenor.training.settings import TrainSettings

REFERENCE = 32
EPOCHS = 3
TRAINING = TrainSettings(
    embedding_dim=50, hidden=32, epochs=EPOCHS, batch_size=REFERENCE, lr=4e-3, workers="1", threads=1
)


def run(settings: BenchSettings, folder: Path, progress: Progress) -> Result:
    """Accuracy after the last epoch, on validation rows; `points` is the distance of the means from the reference."""
    data = Path(settings.data) if settings.data else prepare_demo_reviews(folder)
    contenders = [
        Contender(name, _run_with_next_seed(data, training), {"batch_size": training.batch_size})
        for name, training in rows().items()
    ]
    result = measure("large-batch", contenders, settings.repeats, settings.warmups, progress)
    means = [statistics.fmean(row["spread"]["valid_accuracy"]["values"]) for row in result.rows]
    for row, mean in zip(result.rows, means, strict=True):
        row["mean_accuracy"], row["points"] = mean, 100.0 * (mean - means[0])
    return result


def rows() -> dict[str, TrainSettings]:
    """Name to settings; the first is the reference."""
    found = {"reference": TRAINING}
    for factor in (8, 16):
        larger = replace(TRAINING, batch_size=factor * REFERENCE)
        found[f"x{factor}"] = replace(larger, reference_batch=REFERENCE)
        found[f"x{factor}-without"] = larger
    return found


def _run_with_next_seed(data: Path, training: TrainSettings) -> Callable[[], Mapping[str, float]]:
    seeds = itertools.count()

    def once() -> Mapping[str, float]:
        with tempfile.TemporaryDirectory(prefix="tenor-bench-") as scratch:
            train(data, Path(scratch) / "run", replace(training, seed=next(seeds)))
            return {"valid_accuracy": read_run(Path(scratch) / "run")[1][-1][1]}

    return once
