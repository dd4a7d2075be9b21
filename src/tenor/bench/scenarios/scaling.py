"""Scenario `scaling`: the same training steps with different numbers of workers, one thread each."""

from __future__ import annotations

import tempfile
from collections.abc import Mapping
from dataclasses import replace
from functools import partial
from pathlib import Path

from tenor.bench.measuring import Contender, Result, measure
from tenor.bench.models import LSTM
from tenor.bench.settings import BenchSettings
from tenor.corpus.synthetic.generate import generate
from tenor.corpus.synthetic.settings import GenerateSettings
from tenor.preparation.job.prepare import prepare
from tenor.progress import SILENT, Progress
from tenor.training.launching.launch import train
from tenor.training.settings import TrainSettings

OPTIONS = ("workers",)
STEPS = 60


def run(settings: BenchSettings, folder: Path, progress: Progress) -> Result:
    """Generate and prepare reviews once, then train on them with each number of workers."""
    raw, data = folder / "reviews.jsonl", folder / "data"
    generate(raw, GenerateSettings(rows=20_000))
    prepare([raw], data)
    return compare_workers(data, LSTM, settings, progress)


def compare_workers(
    data: Path, training: TrainSettings, settings: BenchSettings, progress: Progress = SILENT
) -> Result:
    """Measure samples per second with each number of workers, in turns.

    Speed-up and efficiency are relative to the first number of workers.
    """
    contenders = [
        Contender(f"workers-{count}", partial(_train_briefly, data, training, count), {"workers": count})
        for count in settings.worker_counts()
    ]
    result = measure("scaling", contenders, settings.repeats, settings.warmups, progress)
    first = result.rows[0]
    for row in result.rows:
        row["speed_up"] = row["samples_per_s"] / first["samples_per_s"]
        row["efficiency"] = row["speed_up"] * first["workers"] / row["workers"]
    return result


def _train_briefly(data: Path, settings: TrainSettings, workers: int) -> Mapping[str, float]:
    """Train for a few steps; the rates do not include start-up and validation."""
    with tempfile.TemporaryDirectory(prefix="tenor-bench-") as scratch:
        short = replace(settings, workers=workers, threads=1, max_steps=STEPS, test=False)
        values = train(data, Path(scratch) / "run", short).values
    return {name: float(values[name]) for name in ("samples_per_s", "tokens_per_s")}
