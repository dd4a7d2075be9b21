"""Scenario `scaling`: strong and weak scaling of prepare, train and predict over numbers of workers, one thread each.

Strong scaling divides the same work among more workers. Weak scaling gives every worker as much work as one worker
alone: the batch of a step, or the file, grows with the workers. The speed-up of N workers is their throughput divided
by that of the first number of workers in the same turn; the efficiency is the speed-up divided by how many times more
workers there are. Start-up and warm-up steps are not part of a throughput; `startup_s` has the start of the workers.
With more processes than cores, a row has no speed-up: it shows what sharing cores costs, not scaling.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from dataclasses import asdict, replace
from pathlib import Path

from tenor.bench.journal import NO_JOURNAL, FileJournal, Journal
from tenor.bench.measuring import Contender, measure
from tenor.bench.models import LSTM
from tenor.bench.network.hosts import open_hosts
from tenor.bench.network.spec import parse_network
from tenor.bench.results import Result
from tenor.bench.scaling_figures import add_scaling
from tenor.bench.scaling_tables import BASE, STRONG
from tenor.bench.scenarios.scaling.inputs import Inputs
from tenor.bench.scenarios.scaling.points import Point, choose_points
from tenor.bench.scenarios.scaling.work import Threshold, Work
from tenor.bench.settings import BenchSettings
from tenor.environment import usable_cores
from tenor.progress import SILENT, Progress
from tenor.store.manifest import Manifest
from tenor.training.launching.hosts import NetworkHost
from tenor.training.recipe import DataFacts, complete
from tenor.training.settings import NO_VECTORS, TrainSettings

OPTIONS = (
    "workers",
    "rows",
    "stages",
    "strategies",
    "reviews",
    "data",
    "epochs",
    "until_loss",
    "until_accuracy",
    "network",
    "journal",
)


def run(settings: BenchSettings, folder: Path, progress: Progress) -> Result:
    """Make the inputs, then measure all rows in turns."""
    points, notes = choose_points(settings, usable_cores())
    journal: Journal = NO_JOURNAL
    if settings.journal:
        subject = {name: value for name, value in asdict(settings).items() if name != "journal"}
        journal = FileJournal(Path(settings.journal), {"scenario": "scaling", **subject})
    inputs = Inputs(folder, settings.reviews, Path(settings.data) if settings.data else None)
    inputs.make(points, progress)
    with _hosts(settings, points) as hosts:
        work = Work(inputs, replace(LSTM, epochs=settings.epochs), Threshold.of(settings), hosts)
        if isinstance(journal, FileJournal):
            work.curves = journal.curves  # with those of runs that finished before
        contenders = [_contender(point, work, journal) for point in points]
        result = measure("scaling", contenders, settings.repeats, settings.warmups, progress, journal)
    for row, point in zip(result.rows, points, strict=True):
        row["network"] = settings.network or None
        row["shares_cores"] = point.shares_cores
        if point.name in work.curves:
            row["curve"] = work.curves[point.name]
    add_scaling(result.rows)
    result.notes.extend([*notes, *describe_thresholds(settings)])
    return result


def _contender(point: Point, work: Work, journal: Journal) -> Contender:
    first = journal.count(point.name) if isinstance(journal, FileJournal) else 0
    facts = {"stage": point.stage, "kind": point.kind, "strategy": point.strategy or None, "workers": point.workers}
    return Contender(point.name, work.runner(point, first), facts)


@contextlib.contextmanager
def _hosts(settings: BenchSettings, points: list[Point]) -> Iterator[list[NetworkHost]]:
    """A test host for each process of the largest row; none without `--network`."""
    if not settings.network:
        yield []
        return
    with open_hosts(parse_network(settings.network), max(2, *(point.processes for point in points))) as hosts:
        yield hosts


def describe_thresholds(settings: BenchSettings) -> list[str]:
    """A sentence about what the rows of the kind `until` trained for."""
    asked = []
    if settings.until_loss:
        asked.append(f"a mean training loss of at most {settings.until_loss:g} in an epoch")
    if settings.until_accuracy:
        asked.append(f"a validation accuracy of at least {settings.until_accuracy:g}")
    if not asked:
        return []
    return [f"Rows `until` train {settings.epochs} epochs; looked for after each epoch: {' and '.join(asked)}."]


def compare_workers(
    data: Path, training: TrainSettings, settings: BenchSettings, progress: Progress = SILENT
) -> Result:
    """Measure strong scaling of training on given data; speed-ups are relative to the first number of workers."""
    counts, cores = settings.worker_counts(), usable_cores()
    points = [Point("train", BASE if count == counts[0] else STRONG, "auto", count, cores) for count in counts]
    training = complete(training, DataFacts.of(Manifest.load(data)))
    short = replace(training, embeddings=NO_VECTORS)  # a step costs the same wherever vectors start
    work = Work(Inputs(data.parent, 1, data), short, Threshold(), [])
    contenders = [
        Contender(f"workers-{point.workers}", work.runner(point, 0), {"workers": point.workers}) for point in points
    ]
    result = measure("scaling", contenders, settings.repeats, settings.warmups, progress)
    for row, point in zip(result.rows, points, strict=True):
        row.update(stage=point.stage, kind=point.kind, strategy="auto", shares_cores=point.shares_cores)
    add_scaling(result.rows)
    return result
