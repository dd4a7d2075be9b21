"""Scenario `large-batch`: accuracy lost by larger batches after equal epochs, with and without `--reference-batch`.

A small LSTM trains on the demo reviews with batches of 32, and of 8 and 16 times 32. Seeds are paired: the n-th repeat
of every row starts with the same weights. `--reference-batch` scales the learning rate with the batch and warms it up;
in the rows `-without`, the learning rate stays the same as for batches of 32.
"""

from __future__ import annotations

import itertools
import statistics
import tempfile
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path

from tenor.bench.demo_reviews import prepare_demo_reviews
from tenor.bench.measuring import Contender, measure
from tenor.bench.models import LSTM
from tenor.bench.results import Result
from tenor.bench.settings import BenchSettings
from tenor.bench.step_rates import read_run
from tenor.progress import Progress
from tenor.training.launching.launch import train
from tenor.training.settings import TrainSettings

OPTIONS = ("data",)
REFERENCE = 32
EPOCHS = 3
TRAINING = replace(
    LSTM, embedding_dim=50, hidden=32, epochs=EPOCHS, batch_size=REFERENCE, lr=4e-3, workers=1, threads=1
)


def run(settings: BenchSettings, folder: Path, progress: Progress) -> Result:
    """Measure the validation accuracy after the last epoch; `points` is the difference to the mean of the reference."""
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
    """Return the settings of each row by name; the first row is the reference."""
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
