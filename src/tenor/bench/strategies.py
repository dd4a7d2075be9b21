"""Scenario `strategies`: every strategy at every number of workers, on the same task, for the same epochs.

Accuracy and loss are those of the final weights, on all training, validation and test rows. Seeds are paired: the n-th
repeat of every row has the same first weights; `points` is the distance of a row's mean validation accuracy from the
first row's. `async-free` is async without a bound on staleness and without anything against it. The reviews are the
demo's, with a small LSTM. On points the figures of the course project that asynchronous training with a parameter
server began with stand beside ours: its accuracy fell with the number of nodes.
"""

from __future__ import annotations

import itertools
import json
import statistics
import tempfile
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from tenor.bench.core import Contender, Result, measure, spread
from tenor.bench.demo_reviews import prepare_demo_reviews
from tenor.bench.settings import BenchSettings
from tenor.errors import UsageError
from tenor.progress import Progress
from tenor.training.groups import Alone
from tenor.training.launch import train
from tenor.training.run_folder import RunFolder
from tenor.training.settings import TrainSettings
from tenor.training.tasks import make_task

NAMES = ("single", "allreduce", "local-sgd", "diloco", "hogwild", "async", "async-free", "model-parallel", "hybrid")
VARIANTS = {"async-free": {"strategy": "async", "staleness": "inf"}}  # names that are no strategy's own
TRAINING = {
    "points": TrainSettings(task="points", batch_size=256, lr=0.01, threads=1, keep="last"),
    "reviews": TrainSettings(embedding_dim=50, hidden=32, lr=4e-3, threads=1, keep="last"),
}
STAGES = {"points": 2, "reviews": 3}  # of the models, over which model-parallel can be spread
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


Curve = dict[str, list[float]]  # by epoch: seconds, bytes sent and validation accuracy


def run(settings: BenchSettings, folder: Path, progress: Progress) -> Result:
    curves: dict[str, Curve] = {}
    pairs, notes = choose(settings)
    contenders = _contenders(settings, pairs, _source(settings, folder), curves)
    result = measure("strategies", contenders, settings.repeats, settings.warmups, progress)
    first = result.rows[0]
    means = [statistics.fmean(row["spread"]["valid_accuracy"]["values"]) for row in result.rows]
    for row, mean in zip(result.rows, means, strict=True):  # the first row is `single`, unless --rows leaves it out
        row["points"] = 100.0 * (mean - means[0])
        row["speed_up"] = row["samples_per_s"] / first["samples_per_s"]
        row["efficiency"] = row["speed_up"] * first["workers"] / row["workers"]
        row["curve"] = curves[row["name"]]
    beside = original_rows() if settings.task == "points" else []
    return replace(result, rows=[*result.rows, *beside], notes=notes)


def original_rows() -> list[dict[str, Any]]:
    """The original experiment in the shape of our rows."""
    return [
        {
            "name": f"original-{nodes}",
            "strategy": "original",
            "workers": nodes,
            "speed_up": ORIGINAL[1][0] / seconds,
            "efficiency": ORIGINAL[1][0] / seconds / nodes,
            "seconds": seconds,
            "test_accuracy": accuracy,
            "repeats": 1,
            "spread": {"seconds": spread([seconds]), "test_accuracy": spread([accuracy])},
        }
        for nodes, (seconds, accuracy) in ORIGINAL.items()
    ]


def _source(settings: BenchSettings, folder: Path) -> Path:
    if settings.task == "points" or settings.data:
        return Path("points" if settings.task == "points" else settings.data)
    return prepare_demo_reviews(folder)


def choose(settings: BenchSettings) -> tuple[list[tuple[str, int]], list[str]]:
    """Strategies with numbers of workers, and what is left out and why; `single` comes once."""
    pairs = [
        (name, count)
        for name in settings.chosen(NAMES)
        for count in ((1,) if name == "single" else settings.worker_counts())
    ]
    reasons = {pair: why_not(*pair, settings.task) for pair in pairs}
    fitting = [pair for pair, reason in reasons.items() if not reason]
    if not fitting:
        raise UsageError("nothing to measure: " + "; ".join(reasons.values()), remedy="give other --workers or --rows")
    return fitting, [f"left out {name} with {count}: {why}" for (name, count), why in reasons.items() if why]


def why_not(name: str, count: int, task: str) -> str:
    """Why a strategy cannot be measured with so many workers, or nothing."""
    if name == "model-parallel" and count > STAGES[task]:
        return f"the model has {STAGES[task]} stages"
    if name == "hybrid" and (count < 4 or count % 2):
        return "it takes two pairs of workers or more"
    return ""


def _contenders(
    settings: BenchSettings, pairs: list[tuple[str, int]], data: Path, curves: dict[str, Curve]
) -> list[Contender]:
    return [
        Contender(
            f"{name}-{count}",
            _with_next_seed(settings, data, name, count, curves),
            {"strategy": name, "workers": count},
        )
        for name, count in pairs
    ]


def _with_next_seed(
    settings: BenchSettings, data: Path, name: str, count: int, curves: dict[str, Curve]
) -> Callable[[], Mapping[str, float]]:
    seeds = itertools.count()
    options: dict[str, Any] = {
        "strategy": name,
        "workers": str(count),
        "epochs": settings.epochs,
        **VARIANTS.get(name, {}),
    }
    chosen = replace(TRAINING[settings.task], **options)

    def run() -> Mapping[str, float]:
        figures, curves[f"{name}-{count}"] = _train(data, replace(chosen, seed=next(seeds)))
        return figures

    return run


def _train(data: Path, chosen: TrainSettings) -> tuple[Mapping[str, float], Curve]:
    """One whole run; seconds leave out the start of the workers."""
    with tempfile.TemporaryDirectory(prefix="tenor-bench-") as scratch:
        run = Path(scratch) / "run"
        values = train(data, run, chosen).values
        events = [json.loads(line) for line in (run / "metrics.jsonl").read_text("utf-8").splitlines()]
        kept = {"train": _measure_train(data, run, chosen), "valid": values["valid"], "test": values["test"]}
    scores = {f"{split}_accuracy": found["accuracy"] for split, found in kept.items()}
    losses = {f"{split}_loss": found["log_loss"] for split, found in kept.items()}
    optional: dict[str, float] = {key: values[key] for key in ("staleness_mean", "staleness_max") if key in values}
    rates: dict[str, float] = {key: values[key] for key in ("seconds", "samples_per_s", "bytes_sent")}
    return {**rates, **optional, **losses, **scores}, _curve(events)


def _measure_train(data: Path, run: Path, chosen: TrainSettings) -> dict[str, Any]:
    """The final weights on the rows that they were trained on."""
    task = make_task(data, chosen)
    try:
        model = task.make_model()
        model.load_state_dict(RunFolder(run).load_model())
        found = task.measure(model, "train", Alone())
        assert found is not None
        return found.as_dict()
    finally:
        task.close()


def _curve(events: list[dict[str, Any]]) -> Curve:
    steps = [event for event in events if event["event"] == "step"]
    epochs = [event for event in events if event["event"] == "epoch"]
    sent = [sum(step["bytes_sent"] for step in steps if step["step"] <= epoch["step"]) for epoch in epochs]
    return {
        "seconds": [epoch["seconds"] for epoch in epochs],
        "bytes": sent,
        "accuracy": [epoch["valid"]["accuracy"] for epoch in epochs],
    }
