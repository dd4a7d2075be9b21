"""A run folder as a measurement: fits the costs of a step to the lines of its metrics.jsonl."""

from __future__ import annotations

import contextlib
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tenor.errors import RunError
from tenor.planning.costs.compute import fit_line
from tenor.planning.costs.noise_scale import NoiseScale, estimate_noise_scale
from tenor.planning.inputs.figures import find_wrong_figure
from tenor.planning.inputs.measurement import CurvePoint, Measurement, ModelSize, StepCosts, TableSize
from tenor.store.trusted import kept_bytes, open_regular, parse_json, read_json
from tenor.training.runs.config import read_config, read_settings
from tenor.training.traits import STRATEGIES, strategy_name

Floats = NDArray[np.float64]
Event = Mapping[str, Any]

MAX_BYTES = 1 << 20  # of environment.json
MAX_LINES = 2_000_000  # of metrics.jsonl
LINE_BYTES = 1 << 20  # of a line; what follows counts as another line
KEPT_BYTES = 16 << 20  # kept of the step lines and of the epoch lines, see `kept_bytes`: tens of thousands of lines
FEWEST_STEPS = 20
FEWEST_LINES = 2  # of the log, for the mean of a step; a line may stand for several
WARM_UP = 0.1  # share of the steps of an epoch that is left out, at least one
QUANTILES = 200  # of the relative compute times
_TRAIN_AGAIN = "train it again with this version of Tenor"
_NO_FIGURES = (KeyError, TypeError, ValueError, OverflowError)  # what values of a wrong kind raise
_AGAIN = "plan from a longer run, or measure with `tenor plan --measure`"


def measure_run(folder: Path) -> Measurement:
    """Fit the cost model to a run.

    Args:
        folder: A run folder of `tenor train` with the strategy single, allreduce, local-sgd, diloco or hogwild.

    Raises:
        RunError: The folder is not a run, is damaged, or its steps do not tell what a step costs.
    """
    config = read_config(folder)
    settings = read_settings(config, folder)
    environment = read_json(folder / "environment.json", MAX_BYTES, RunError)
    steps, epochs = _read_log(folder / "metrics.jsonl")
    workers = len(steps[0]["compute_seconds"]) if steps else 0
    strategy = strategy_name(str(settings.get("strategy", "auto")), max(1, workers))
    if strategy not in STRATEGIES:
        raise RunError(f"has the unknown strategy {strategy!r:.60}", where=folder, remedy=_TRAIN_AGAIN)
    _refuse(folder, settings, strategy, environment)
    table = _StepTable(steps, folder)
    try:
        threads, cores = int(environment.get("threads", 1)), int(environment.get("machine", {}).get("cores", 1))
        found = Measurement(
            source=str(folder),
            environment=environment,
            command=f"tenor plan {folder}",
            strategy=strategy,
            workers=workers,
            threads=threads,
            cores=cores,
            batch_size=int(settings["batch_size"]),
            reviews=int(environment["sizes"]["train_rows"]) + int(environment["sizes"].get("added_rows", 0)),
            epochs=int(settings["epochs"]),
            tokens=float(table.tokens.mean()),
            padding=float(table.padded.sum() / max(1.0, table.tokens.sum())),
            costs=table.costs(is_hidden=workers * threads < cores),
            model=table.model(environment["sizes"]),
            noise_scale=table.noise_scale(),
            curve=tuple(_curve(epochs)),
            settings=dict(settings),
            data_sha256=str(config.get("data_sha256", "")),
        )
    except (*_NO_FIGURES, AttributeError, ArithmeticError) as error:
        what = f"does not have the figures that a plan needs ({type(error).__name__}: {error!s:.100})"
        raise RunError(what, where=folder, remedy=_TRAIN_AGAIN) from error
    if (wrong := find_wrong_figure(found)) is not None:
        raise RunError(f"has figures with which no plan can be computed: {wrong}", where=folder, remedy=_TRAIN_AGAIN)
    return found


@dataclass(frozen=True)
class MeasuredStep:
    """The mean step of a run, whatever its strategy."""

    seconds: float
    tokens: float
    bytes_sent: float
    steps: int


def measure_step(folder: Path) -> MeasuredStep | None:
    """The mean step after the warm-up; None if the run has too few steps."""
    kept = _warm(_read_log(folder / "metrics.jsonl")[0])
    try:
        steps = sum(now["step"] - before["step"] for before, now, _ in kept)
        seconds = sum(now["seconds"] - before["seconds"] for before, now, _ in kept)
        tokens, sent = (sum(now[name] for _, now, _ in kept) for name in ("tokens", "bytes_sent"))
    except _NO_FIGURES:
        return None
    if len(kept) < FEWEST_LINES or steps <= 0:
        return None
    return MeasuredStep(seconds / steps, tokens / steps, sent / steps, steps)


def _refuse(folder: Path, settings: Mapping[str, Any], strategy: str, environment: Mapping[str, Any]) -> None:
    traits = STRATEGIES[strategy]
    if traits.has_server or traits.splits_model:
        what = f"was trained with --strategy {strategy}, so its log does not have the cost of a worker's step"
        planned = f"; `tenor plan --strategy {strategy}` then predicts {strategy}"
        planned = planned if traits.has_server else f"; no plan predicts {strategy}"
        raise RunError(what, where=folder, remedy=f"plan from a run with --strategy single or allreduce{planned}")
    if environment.get("device", settings.get("device")) == "cuda":
        what = "was trained on GPUs, and a plan can be made only from a run on processors"
        remedy = "plan --from a table of finished runs, or from a run with --device cpu for machines without GPUs"
        raise RunError(what, where=folder, remedy=remedy)
    if settings.get("slowdown"):
        what = f"was trained with --slowdown {settings['slowdown']}, so its workers were not equal"
        raise RunError(what, where=folder, remedy="plan from a run without it; `tenor plan --mix` predicts such mixes")
    if "sizes" not in environment:
        what = "was trained by an older version: its environment.json has no sizes"
        raise RunError(what, where=folder, remedy="train it again with this version of Tenor")


def _read_log(file: Path) -> tuple[list[Event], list[Event]]:
    """The first step lines, and the epoch lines with the samples seen until then. What is kept has a limit."""
    steps, epochs, seen = _Kept(), _Kept(), 0.0
    for event, size in _events(file):
        if event.get("event") == "step" and isinstance(event.get("compute_seconds"), list):
            seen += samples if isinstance(samples := event.get("samples"), int | float) else math.nan
            steps.add(event, size)
        elif event.get("event") == "epoch":
            epochs.add({**event, "samples_seen": seen}, size)
    return steps.events, epochs.events


@dataclass
class _Kept:
    """Events up to a limit of memory."""

    events: list[Event] = field(default_factory=list)
    size: int = 0

    def add(self, event: Event, size: int) -> None:
        self.size += size
        if self.size <= KEPT_BYTES:
            self.events.append(event)


def _events(file: Path) -> Iterator[tuple[Event, int]]:
    """The events of a log, and what each counts as in memory."""
    try:
        with open_regular(file, RunError) as handle, open(handle, "rb", closefd=False) as stream:
            for _ in range(MAX_LINES):
                if not (line := stream.readline(LINE_BYTES)):
                    return
                with contextlib.suppress(RunError):  # a line that a killed process has not finished
                    yield parse_json(line, file, RunError), kept_bytes(line)
    except FileNotFoundError as error:
        raise RunError("has no metrics.jsonl", where=file.parent, remedy=_AGAIN) from error


class _StepTable:
    """The columns of the step lines, without warm-up; every value is per step, also where a line stands for several."""

    def __init__(self, steps: Sequence[Event], folder: Path) -> None:
        kept = _warm(steps)
        if len(kept) < FEWEST_STEPS:
            what = f"has only {len(kept)} steps after the warm-up, and a plan needs {FEWEST_STEPS}"
            raise RunError(what, where=folder, remedy=_AGAIN)
        try:
            self.steps = np.array([now["step"] - before["step"] for before, now, _ in kept], np.float64)
            if not (self.steps > 0).all():
                raise RunError("has steps that do not follow one another", where=folder, remedy=_AGAIN)
            self.seconds = self._column([now["seconds"] - before["seconds"] for before, now, _ in kept])
            self.tokens = self._column([now["tokens"] for _, now, _ in kept])
            self.samples = self._column([now["samples"] for _, now, _ in kept])
            self.load = self._column([now["load_seconds"] for _, now, _ in kept])
            self.compute, self.padded, self.shares = (
                np.array([now[name] for _, now, _ in kept], np.float64) / self.steps[:, None]
                for name in ("compute_seconds", "padded_tokens", "shares")
            )
            self.wait = np.array([after["wait_seconds"] for _, _, after in kept], np.float64) / self.steps[:, None]
            self.rows = {
                name: self._column([now["rows"][name] for _, now, _ in kept]) for name in kept[0][1].get("rows", {})
            }
            self.norms = np.array(
                [(now["worker_gradient_norm"], now["gradient_norm"]) for _, now, _ in kept if "gradient_norm" in now]
            )
        except (*_NO_FIGURES, AttributeError) as error:
            what = f"has steps without the figures that a plan needs ({type(error).__name__}: {error!s:.100})"
            raise RunError(what, where=folder, remedy=_TRAIN_AGAIN) from error
        by_worker = (self.compute, self.padded, self.shares, self.wait)
        columns = (self.seconds, self.tokens, self.samples, self.load, *by_worker, *self.rows.values())
        is_good = all(np.isfinite(column).all() and (column >= 0).all() for column in columns)
        shapes = {column.shape for column in by_worker}
        if not is_good or len(shapes) != 1 or self.compute.ndim != 2 or not self.compute.size:
            raise RunError("has steps with figures that no step can have", where=folder, remedy=_AGAIN)
        if not ((self.padded > 0) & (self.compute > 0)).any(axis=1).all():
            raise RunError("has steps in which no worker computed", where=folder, remedy=_AGAIN)

    def _column(self, values: Sequence[float]) -> Floats:
        return np.array(values, np.float64) / self.steps

    def costs(self, is_hidden: bool) -> StepCosts:
        seen = (self.padded > 0) & (self.compute > 0)
        compute = fit_line(self.padded[seen], self.compute[seen])
        relative = self.compute[seen] / np.maximum(compute.fixed + compute.slope * self.padded[seen], 1e-12)
        # The first worker writes the log: what it neither computed nor waited is the update and the rest of the step.
        rest = np.maximum(self.seconds - self.compute[:, 0] - self.wait[:, 0], 1e-6)
        noise = np.quantile(relative, (np.arange(QUANTILES) + 0.5) / QUANTILES)
        return StepCosts(
            compute=compute,
            update=fit_line(self.tokens, rest),
            load=fit_line(self.tokens, np.maximum(self.load, 1e-9)),
            load_is_hidden=is_hidden,
            noise=tuple(float(f"{one:.5g}") for one in noise),
            exchange_s=float(np.median(self.wait.min(axis=1))) if self.compute.shape[1] > 1 else None,
            exchange_workers=self.compute.shape[1],
            steps=round(float(self.steps.sum())),
        )

    def model(self, sizes: Mapping[str, Any]) -> ModelSize:
        tables = {
            name: TableSize(int(one["rows"]), int(one["row_bytes"]), float(self.rows[name].mean()))
            for name, one in sizes["tables"].items()
            if name in self.rows
        }
        return ModelSize(int(sizes["dense_bytes"]), tables)

    def noise_scale(self) -> NoiseScale | None:
        if len(self.norms) < len(self.seconds):
            return None
        has_rows = self.shares > 0
        inverse = np.where(has_rows, 1.0 / np.maximum(self.shares, 1.0), 0.0).sum(axis=1) / has_rows.sum(axis=1)
        squares = self.norms**2
        known = np.isfinite(squares).all(axis=1)
        return estimate_noise_scale(
            squares[known, 0], squares[known, 1], inverse[known], 1.0 / np.maximum(self.samples[known], 1.0)
        )


def _warm(steps: Sequence[Event]) -> list[tuple[Event, Event, Event]]:
    """(line before, line, line after) within an epoch, without its first steps. The wait of a line is in the next."""
    kept = []
    by_epoch: dict[str, list[Event]] = {}
    for step in steps:
        by_epoch.setdefault(str(step.get("epoch")), []).append(step)
    for lines in by_epoch.values():
        first = max(1, math.ceil(WARM_UP * len(lines)))
        kept += list(zip(lines[first - 1 :], lines[first:], lines[first + 1 :], strict=False))
    return kept


def _curve(epochs: Sequence[Event]) -> Iterator[CurvePoint]:
    """Accuracy on the validation split by the samples seen until then."""
    for epoch in epochs:
        accuracy, samples = epoch.get("valid", {}).get("accuracy"), epoch["samples_seen"]
        if isinstance(accuracy, int | float) and samples > 0:
            yield CurvePoint(int(samples), float(accuracy))
