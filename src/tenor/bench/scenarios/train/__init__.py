"""Scenario `train`: compares Tenor with plain PyTorch and two course projects, with equal models and reviews.

Every row trains for `--epochs` epochs (the rows `large` for ten steps) with one thread per process. Its rates do not
include start-up, validation and the first steps of an epoch. `two-alone` is two independent single-worker runs at the
same time: the speed of two cores without any communication. The rows of the course projects, and the rows of Tenor with
the same models, use the largest number of workers in `--workers`.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

from tenor.bench.measuring import Contender, measure
from tenor.bench.models import LSTM
from tenor.bench.results import Result
from tenor.bench.scenarios.train.data import ReviewShape, make_data
from tenor.bench.scenarios.train.ratios import add_ratios
from tenor.bench.scenarios.train.runs import Outcome, run_alone, run_matmul, run_plain, run_tenor
from tenor.bench.settings import BenchSettings
from tenor.progress import Progress
from tenor.training.settings import TrainSettings

OPTIONS = ("workers", "rows", "batch_sizes", "epochs", "target", "data")
ALONE = {2: "two-alone", 3: "three-alone", 4: "four-alone"}

MAIN = replace(
    LSTM, pooling="max", dropout=0.0, input_dropout=0.0, decay="none", warmup_epochs=0.0, epochs=1, threads=1
)
SMALL = replace(
    MAIN, hidden=32, layers=2, batch_size=128, optimizer="sgd", lr=0.1, momentum=0.9, clip=0.0, pooling="last"
)
LARGE = replace(
    MAIN, embedding_dim=400, hidden=512, layers=2, batch_size=32, lr=1e-3, clip=0.0, pooling="last", max_steps=10
)
REVIEWS = ReviewShape(vocab_size=30_000, max_length=400)
COURSES = {
    "small": (SMALL, ReviewShape(10_000, 100, fixed=True)),
    "large": (LARGE, ReviewShape(30_000, 200, fixed=True)),
}


@dataclass(frozen=True)
class Row:
    """One row of the result: the program, the reviews, the model and the workers."""

    name: str
    run: Callable[[Path, TrainSettings, int], Outcome]
    shape: ReviewShape
    training: TrainSettings
    workers: int


def run(settings: BenchSettings, folder: Path, progress: Progress) -> Result:
    """Measure the chosen rows in turns and add the ratios between them."""
    known = _rows(settings)
    wanted = settings.chosen(row.name for row in known)
    rows = [row for row in known if row.name in wanted]
    data = {shape: make_data(shape, folder, settings.data) for shape in {row.shape for row in rows}}
    contenders = [_contender(row, data[row.shape], settings.target) for row in rows]
    roofs = [
        Contender(f"matmul-{n}", partial(run_matmul, n), {"workers": n}) for n in sorted({r.workers for r in rows})
    ]
    result = measure("train", [*roofs, *contenders], settings.repeats, settings.warmups, progress)
    add_ratios(result.rows, {row.name: row.training for row in rows})
    return result


def _rows(settings: BenchSettings) -> list[Row]:
    counts, rows = settings.worker_counts(), []
    for batch_size in settings.batch_size_list():
        training = replace(MAIN, batch_size=batch_size, epochs=settings.epochs)
        for count in counts:
            rows.append(Row(f"tenor-{count}", run_tenor, REVIEWS, training, count))
            rows.append(Row(f"ddp-{count}", run_plain, REVIEWS, training, count))
        rows += [Row(ALONE[count], run_alone, REVIEWS, training, count) for count in counts if count in ALONE]
    for name, (model, shape) in COURSES.items():
        training = model if model.max_steps else replace(model, epochs=settings.epochs)
        rows.append(Row(f"course-{name}", run_plain, shape, training, max(counts)))
        rows.append(Row(f"tenor-{name}", run_tenor, shape, training, max(counts)))
    return rows


def _contender(row: Row, data: Path, target: float) -> Contender:
    def measured() -> Mapping[str, float]:
        rates, accuracies = row.run(data, row.training, row.workers)
        figures = {**rates, "valid_accuracy": max(accuracy for _, accuracy in accuracies)}
        if target:
            figures["seconds_to_target"] = min((at for at, a in accuracies if a >= target), default=math.inf)
        return figures

    return Contender(row.name, measured, {"workers": row.workers, "batch_size": row.training.batch_size})
