"""Scenario `strategies`: every strategy at every number of workers, on the same task, for the same epochs.

On points the figures of the course project that asynchronous training with a parameter server began with stand beside
ours: its accuracy fell with the number of nodes.
"""

from __future__ import annotations

import json
import tempfile
from collections.abc import Mapping
from functools import partial
from pathlib import Path
from typing import Any

from tenor.bench.core import Contender, Result, measure
from tenor.bench.settings import BenchSettings
from tenor.corpus.generation import GenerateSettings
from tenor.corpus.synthetic import generate
from tenor.errors import UsageError
from tenor.preparation.job import prepare
from tenor.progress import Progress
from tenor.training.launch import train
from tenor.training.settings import TrainSettings

NAMES = ("single", "allreduce", "local-sgd", "diloco", "hogwild", "async")
ORIGINAL = {  # nodes → seconds and accuracy of the original experiment
    1: (795.53, 0.757),
    2: (621.33, 0.680),
    4: (530.41, 0.559),
    6: (513.5, 0.552),
    8: (489.72, 0.523),
    10: (496.44, 0.626),
    16: (518.07, 0.689),
    32: (582.66, 0.721),
}


def run(settings: BenchSettings, folder: Path, progress: Progress) -> Result:
    contenders = _contenders(settings, _source(settings, folder))
    result = measure("strategies", contenders, settings.repeats, settings.warmups, progress)
    first = result.rows[0]
    for row in result.rows:  # against the first row: `single`, unless --rows leaves it out
        row["speed_up"] = row["samples_per_s"] / first["samples_per_s"]
        row["efficiency"] = row["speed_up"] * first["workers"] / row["workers"]
    return result


def _source(settings: BenchSettings, folder: Path) -> Path:
    if settings.task == "points" or settings.data:
        return Path("points" if settings.task == "points" else settings.data)
    raw, data = folder / "reviews.jsonl", folder / "data"
    generate(raw, GenerateSettings(rows=20_000))
    prepare([raw], data)
    return data


def _contenders(settings: BenchSettings, data: Path) -> list[Contender]:
    """`single` once; the others at every number of workers."""
    names = settings.rows.split(",") if settings.rows else NAMES
    if unknown := sorted(set(names) - set(NAMES)):
        raise UsageError(f"no strategy {unknown[0]!r}", remedy=f"give --rows some of {','.join(NAMES)}")
    pairs = [(name, count) for name in names for count in ((1,) if name == "single" else settings.worker_counts())]
    return [
        Contender(f"{name}-{count}", partial(_train, settings, data, name, count), _facts(settings, name, count))
        for name, count in pairs
    ]


def _facts(settings: BenchSettings, name: str, count: int) -> dict[str, Any]:
    facts: dict[str, Any] = {"strategy": name, "workers": count}
    if settings.task == "points" and count in ORIGINAL:
        facts["original_seconds"], facts["original_accuracy"] = ORIGINAL[count]
    return facts


def _train(settings: BenchSettings, data: Path, name: str, count: int) -> Mapping[str, float]:
    """One whole run; seconds leave out the start of the workers."""
    points: dict[str, Any] = {"batch_size": 256, "lr": 0.01} if settings.task == "points" else {}
    chosen = TrainSettings(
        task=settings.task, strategy=name, workers=str(count), threads=1, epochs=settings.epochs, keep="last", **points
    )
    with tempfile.TemporaryDirectory(prefix="tenor-bench-") as scratch:
        run = Path(scratch) / "run"
        values = train(data, run, chosen).values
        events = [json.loads(line) for line in (run / "metrics.jsonl").read_text("utf-8").splitlines()]
    losses = [event["train_loss"] for event in events if event["event"] == "epoch"]
    figures = {"seconds": values["seconds"], "samples_per_s": values["samples_per_s"], "train_loss": losses[-1]}
    scores = {f"{split}_accuracy": values[split]["accuracy"] for split in ("valid", "test")}
    return {**figures, **scores, "bytes_sent": values["bytes_sent"], "staleness": values["staleness_mean"]}
