"""Scenario `strategies`: every strategy with every number of workers, on the same task, for the same epochs.

Accuracy and loss are measured with the final weights on all training, validation and test rows. Seeds are paired: the
n-th repeat of every row starts with the same weights. `points` is the difference between the mean validation accuracy
of a row and of the first row. `async-free` is `async` without a limit on staleness and without any correction for it.
With `--task reviews`, a small LSTM trains on the demo reviews. With `--task words`, skip-gram learns word vectors from
`--data`, or from a generated text, and `similarity` is the Spearman correlation of the vectors' cosines with
`--similarities`, or with the similarities that were planted in the generated text. With `--task points`, the result
also has the figures of the course project from which asynchronous training in Tenor started; its accuracy fell with the
number of nodes.
"""

from __future__ import annotations

import itertools
import json
import statistics
import tempfile
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from torch import nn

from tenor.bench.demo_reviews import prepare_demo_reviews
from tenor.bench.measuring import Contender, measure, spread
from tenor.bench.models import LSTM
from tenor.bench.results import Result
from tenor.bench.settings import BenchSettings
from tenor.embedding.planted import plant
from tenor.embedding.questions import score_file
from tenor.errors import UsageError
from tenor.groups import Alone
from tenor.progress import Progress
from tenor.training.launching.launch import train
from tenor.training.runs.folder import RunFolder
from tenor.training.settings import TrainSettings
from tenor.training.tasks import make_task
from tenor.training.tasks.base import Task
from tenor.training.tasks.words import Words
from tenor.training.traits import STRATEGIES, TASKS, StrategyTraits

OPTIONS = ("workers", "rows", "epochs", "data", "task", "similarities")
VARIANTS = {"async-free": {"strategy": "async", "staleness": "inf"}}  # rows that are a strategy with other settings
NAMES = tuple(
    name
    for strategy in STRATEGIES
    for name in (strategy, *(variant for variant, options in VARIANTS.items() if options["strategy"] == strategy))
)
CHANGES: dict[str, dict[str, Any]] = {  # settings that suit a task better than the defaults
    "points": {"batch_size": 256, "lr": 0.01},
    "words": {"batch_size": 256, "lr": 5e-3},
    "reviews": {"embedding_dim": 50, "hidden": 32, "lr": 4e-3},
}
ORIGINAL_TASKS = ("points",)  # tasks beside which the course project's figures are shown
ORIGINAL = {  # nodes → seconds and accuracy in the course project
    1: (795.53, 0.757),
    2: (621.33, 0.680),
    4: (530.41, 0.559),
    6: (513.5, 0.552),
    8: (489.72, 0.523),
    10: (496.44, 0.626),
    16: (518.07, 0.689),
    32: (582.66, 0.721),
}

Curve = dict[str, list[float]]  # one value per epoch: seconds, bytes sent, validation accuracy


def run(settings: BenchSettings, folder: Path, progress: Progress) -> Result:
    """Train with each strategy and number of workers, in turns."""
    curves: dict[str, Curve] = {}
    pairs, notes = choose(settings)
    subject = Subject(*_subject(settings, folder))
    contenders = _contenders(settings, pairs, subject, curves)
    result = measure("strategies", contenders, settings.repeats, settings.warmups, progress)
    first = result.rows[0]
    means = [statistics.fmean(row["spread"]["valid_accuracy"]["values"]) for row in result.rows]
    for row, mean in zip(result.rows, means, strict=True):  # the first row is `single`, unless --rows excludes it
        row["points"] = 100.0 * (mean - means[0])
        row["speed_up"] = row["samples_per_s"] / first["samples_per_s"]
        row["efficiency"] = row["speed_up"] * first["workers"] / row["workers"]
        row["curve"] = curves[row["name"]]
    original = original_rows() if settings.task in ORIGINAL_TASKS else []
    return replace(result, rows=[*result.rows, *original], notes=notes)


def original_rows() -> list[dict[str, Any]]:
    """Return the figures of the course project as rows of a result."""
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


@dataclass(frozen=True)
class Subject:
    """What the rows learn from."""

    data: Path
    similarities: Path | None = None  # a file of word similarities


def _subject(settings: BenchSettings, folder: Path) -> tuple[Path, Path | None]:
    traits = TASKS[settings.task]
    if settings.similarities and not (traits.reads_words and settings.data):
        what = f"--similarities {settings.similarities} has no effect without --task words and --data"
        raise UsageError(what, remedy="give both, or omit --similarities")
    if traits.reads_words and not settings.data:
        planted = folder / "similarities.tsv"
        planted.write_text(plant(1).questions(), "utf-8")
        return Path(settings.task), planted
    if traits.reads_words:
        return Path(settings.data), Path(settings.similarities) if settings.similarities else None
    if not traits.reads_text:
        return Path(settings.task), None
    return Path(settings.data) if settings.data else prepare_demo_reviews(folder), None


def choose(settings: BenchSettings) -> tuple[list[tuple[str, int]], list[str]]:
    """Return the (strategy, workers) pairs to measure, and a note for each pair that is skipped.

    Raises:
        UsageError: No pair can be measured.
    """
    pairs = [
        (name, count)
        for name in settings.chosen(NAMES)
        for count in ((1,) if _traits(name).is_for_one else settings.worker_counts())
    ]
    reasons = {pair: why_not(*pair, settings.task) for pair in pairs}
    fitting = [pair for pair, reason in reasons.items() if not reason]
    if not fitting:
        raise UsageError(
            "nothing to measure: " + "; ".join(reasons.values()), remedy="choose other --workers or --rows"
        )
    return fitting, [f"Skipped {name} with {count} workers: {why}." for (name, count), why in reasons.items() if why]


def training_settings(task: str) -> TrainSettings:
    """Return the settings that all rows share."""
    return replace(LSTM, task=task, threads=1, keep="last", **CHANGES.get(task, {}))


def _traits(name: str) -> StrategyTraits:
    """Return the traits of the strategy that a row measures."""
    return STRATEGIES[VARIANTS.get(name, {"strategy": name})["strategy"]]


def why_not(name: str, count: int, task: str) -> str:
    """Return why a strategy cannot run with this number of workers; empty if it can."""
    traits, depth, num_stages = _traits(name), training_settings(task).model_parallel, TASKS[task].num_stages
    if traits.splits_model and "model_parallel" not in traits.settings:  # all workers share one model
        return f"the model has only {num_stages} stages" if count > num_stages else ""
    if traits.splits_model and (count < 2 * depth or count % depth):
        return f"it needs a multiple of {depth} workers, at least {2 * depth}"
    return ""


def _contenders(
    settings: BenchSettings, pairs: list[tuple[str, int]], subject: Subject, curves: dict[str, Curve]
) -> list[Contender]:
    return [
        Contender(
            f"{name}-{count}",
            _with_next_seed(settings, subject, name, count, curves),
            {"strategy": name, "workers": count},
        )
        for name, count in pairs
    ]


def _with_next_seed(
    settings: BenchSettings, subject: Subject, name: str, count: int, curves: dict[str, Curve]
) -> Callable[[], Mapping[str, float]]:
    seeds = itertools.count()
    options: dict[str, Any] = {
        "strategy": name,
        "workers": str(count),
        "epochs": settings.epochs,
        **VARIANTS.get(name, {}),
    }
    chosen = replace(training_settings(settings.task), **options)

    def run() -> Mapping[str, float]:
        figures, curves[f"{name}-{count}"] = _train(subject, replace(chosen, seed=next(seeds)))
        return figures

    return run


def _train(subject: Subject, chosen: TrainSettings) -> tuple[Mapping[str, float], Curve]:
    """Train once; the seconds do not include the start of the workers."""
    with tempfile.TemporaryDirectory(prefix="tenor-bench-") as scratch:
        run = Path(scratch) / "run"
        values = train(subject.data, run, chosen).values
        events = [json.loads(line) for line in (run / "metrics.jsonl").read_text("utf-8").splitlines()]
        on_train, quality = _measure_kept(subject, run, chosen)
        kept = {"train": on_train, "valid": values["valid"], "test": values["test"]}
    scores = {f"{split}_accuracy": found["accuracy"] for split, found in kept.items()}
    losses = {f"{split}_loss": found["log_loss"] for split, found in kept.items()}
    optional: dict[str, float] = {key: values[key] for key in ("staleness_mean", "staleness_max") if key in values}
    rates: dict[str, float] = {key: values[key] for key in ("seconds", "samples_per_s", "bytes_sent")}
    return {**rates, **optional, **losses, **scores, **quality}, _curve(events)


def _measure_kept(subject: Subject, run: Path, chosen: TrainSettings) -> tuple[dict[str, Any], dict[str, float]]:
    """Measure the final weights on the training rows, and word vectors on similarities of words."""
    task = make_task(subject.data, chosen)
    try:
        model = task.make_model()
        model.load_state_dict(RunFolder(run).load_model(model.state_dict()))
        found = task.measure(model, "train", Alone())
        assert found is not None
        return found.as_dict(), _similarity(task, model, subject.similarities)
    finally:
        task.close()


def _similarity(task: Task, model: nn.Module, file: Path | None) -> dict[str, float]:
    if not isinstance(task, Words) or file is None:
        return {}
    found = score_file(task.vectors(model), file)
    return {"similarity": found.get("spearman") or 0.0}


def _curve(events: list[dict[str, Any]]) -> Curve:
    steps = [event for event in events if event["event"] == "step"]
    epochs = [event for event in events if event["event"] == "epoch"]
    sent = [sum(step["bytes_sent"] for step in steps if step["step"] <= epoch["step"]) for epoch in epochs]
    return {
        "seconds": [epoch["seconds"] for epoch in epochs],
        "bytes": sent,
        "accuracy": [epoch["valid"]["accuracy"] for epoch in epochs],
    }
