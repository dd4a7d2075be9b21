"""The work of one point, done once: prepare or predict in a child process, or train for some steps."""

from __future__ import annotations

import json
import math
import tempfile
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from tenor.bench.peers.processes import run_together
from tenor.bench.scaling_tables import UNTIL, WEAK
from tenor.bench.scenarios.scaling.inputs import Inputs
from tenor.bench.scenarios.scaling.points import Point
from tenor.bench.settings import BenchSettings
from tenor.bench.step_rates import read_run
from tenor.training.launching.hosts import NetworkHost
from tenor.training.launching.launch import train
from tenor.training.settings import TrainSettings
from tenor.training.traits import strategy_name

STEPS = 60
CHILD = "tenor.bench.scenarios.scaling.child"


@dataclass(frozen=True)
class Threshold:
    """When training has reached what was asked for; 0 means that nothing was asked."""

    loss: float = 0.0
    accuracy: float = 0.0

    @classmethod
    def of(cls, settings: BenchSettings) -> Threshold:
        return cls(settings.until_loss, settings.until_accuracy)

    def reached(self, epochs: Sequence[Mapping[str, Any]]) -> dict[str, float]:
        """Epochs and seconds until each threshold, by name; infinite if no epoch of the log reaches it."""
        found: dict[str, float] = {}
        if self.loss:
            found |= _first(f"loss_{self.loss:g}", [_loss(epoch) <= self.loss for epoch in epochs], epochs)
        if self.accuracy:
            goal = f"accuracy_{self.accuracy:g}"
            found |= _first(goal, [_accuracy(epoch) >= self.accuracy for epoch in epochs], epochs)
        return found


def _loss(epoch: Mapping[str, Any]) -> float:
    """The mean training loss of an epoch; infinite if it is not known."""
    return math.inf if epoch.get("train_loss") is None else float(epoch["train_loss"])


def _accuracy(epoch: Mapping[str, Any]) -> float:
    """The validation accuracy after an epoch; 0 if there is no validation split."""
    return float(epoch.get("valid", {}).get("accuracy") or 0.0)


def _first(goal: str, is_there: Sequence[bool], epochs: Sequence[Mapping[str, Any]]) -> dict[str, float]:
    first = next((epoch for epoch, reached in zip(epochs, is_there, strict=True) if reached), None)
    way = (math.inf, math.inf) if first is None else (float(first["epoch"]), float(first["seconds"]))
    return {f"epochs_to_{goal}": way[0], f"seconds_to_{goal}": way[1]}


class Work:
    """Does the work of points.

    Args:
        inputs: The files to work on.
        training: Settings that all training rows share.
        threshold: What rows of the kind `until` train for.
        hosts: Test hosts for the processes of a training run; empty: they share this machine's network.
    """

    def __init__(
        self, inputs: Inputs, training: TrainSettings, threshold: Threshold, hosts: Sequence[NetworkHost]
    ) -> None:
        self.inputs, self.training, self.threshold, self.hosts = inputs, training, threshold, hosts
        self.curves: dict[str, dict[str, list[float]]] = {}  # by name of a point: the last run until a threshold

    def runner(self, point: Point, first: int) -> Callable[[], Mapping[str, float]]:
        """A function that does the work once more each time; runs until a threshold have seeds from `first` on."""
        seeds = iter(range(first, 1 << 30))

        def run() -> Mapping[str, float]:
            if point.kind == UNTIL:
                return self._train_until(point, next(seeds))
            return self._train(point) if point.stage == "train" else self._in_child(point)

        return run

    def _in_child(self, point: Point) -> Mapping[str, float]:
        """Prepare or predict: a process of its own starts the workers, warms them up, and measures the rest."""
        job = {
            "stage": point.stage,
            "workers": point.workers,
            "source": str(self.inputs.raw(point)),
            "folder": str(self.inputs.folder),
            "run": str(self.inputs.run),
        }
        (found,) = run_together(CHILD, [job])
        megabytes = self.inputs.raw(point).stat().st_size / 1e6
        rate = self.inputs.num_reviews(point) / found["seconds"]
        return {"samples_per_s": rate, "mb_per_s": megabytes / found["seconds"], **found}

    def _settings(self, point: Point, **changes: Any) -> TrainSettings:
        size = self.training.batch_size * (point.workers if point.kind == WEAK else 1)
        common: dict[str, Any] = {"strategy": strategy_name(point.strategy, point.workers), "workers": point.workers}
        return replace(self.training, threads=1, batch_size=size, test=False, **common, **changes)

    def _train(self, point: Point) -> Mapping[str, float]:
        """Train for a few steps."""
        events, run = self._run(self._settings(point, max_steps=STEPS, epochs=max(STEPS, self.training.epochs)), point)
        steps = [event for event in events if event["event"] == "step"]
        sent = sum(step["bytes_sent"] for step in steps)
        return {**run, "bytes_per_step": sent / steps[-1]["step"]}

    def _train_until(self, point: Point, seed: int) -> Mapping[str, float]:
        """Train all epochs; the threshold is looked for in the log, because the learning rate depends on the end."""
        events, run = self._run(self._settings(point, seed=seed), point)
        epochs = [event for event in events if event["event"] == "epoch"]
        accuracies = [_accuracy(epoch) for epoch in epochs]
        self.curves[point.name] = {"accuracy": accuracies, "seconds": [epoch["seconds"] for epoch in epochs]}
        return {**run, **self.threshold.reached(epochs), "valid_accuracy": accuracies[-1]}

    def _run(self, settings: TrainSettings, point: Point) -> tuple[list[dict[str, Any]], dict[str, float]]:
        """The events of a run, and its rates without warm-up steps."""
        hosts = self.hosts[: point.processes] if point.processes > 1 else ()
        with tempfile.TemporaryDirectory(prefix="tenor-bench-") as scratch:
            out = Path(scratch) / "run"
            train(self.inputs.data, out, settings, hosts=hosts)
            events = [json.loads(line) for line in (out / "metrics.jsonl").read_text("utf-8").splitlines()]
            return events, read_run(out)[0].rates()
