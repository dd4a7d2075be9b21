"""Scenario `scaling`: the same steps on the same reviews with more and more workers, one thread each."""

from __future__ import annotations

import tempfile
from collections.abc import Mapping
from dataclasses import replace
from functools import partial
from pathlib import Path

from tenor.bench.core import Contender, Result, measure
from tenor.bench.settings import BenchSettings
from tenor.corpus.generation import GenerateSettings
from tenor.corpus.synthetic import generate
from tenor.preparation.job import prepare
from tenor.progress import SILENT, Progress
from tenor.training.launch import train
from tenor.training.settings import TrainSettings

STEPS = 60


def run(settings: BenchSettings, folder: Path, progress: Progress) -> Result:
    """Generate reviews, prepare them once, and train on them with each number of workers."""
    raw, data = folder / "reviews.jsonl", folder / "data"
    generate(raw, GenerateSettings(rows=20_000))
    prepare([raw], data)
    return compare_workers(data, TrainSettings(), settings, progress)


def compare_workers(
    data: Path, training: TrainSettings, settings: BenchSettings, progress: Progress = SILENT
) -> Result:
    """Samples a second with each number of workers, in turns; efficiency is against the first of them."""
    contenders = [
        Contender(f"workers-{count}", partial(_stretch, data, training, count), {"workers": count})
        for count in settings.worker_counts()
    ]
    result = measure("scaling", contenders, settings.repeats, settings.warmups, progress)
    first = result.rows[0]
    for row in result.rows:
        row["speed_up"] = row["samples_per_s"] / first["samples_per_s"]
        row["efficiency"] = row["speed_up"] * first["workers"] / row["workers"]
    return result


def _stretch(data: Path, settings: TrainSettings, workers: int) -> Mapping[str, float]:
    """A short run whose figures leave out start-up and validation."""
    with tempfile.TemporaryDirectory(prefix="tenor-bench-") as scratch:
        short = replace(settings, workers=str(workers), threads=1, max_steps=STEPS, test=False)
        values = train(data, Path(scratch) / "run", short).values
    return {name: float(values[name]) for name in ("samples_per_s", "tokens_per_s")}
