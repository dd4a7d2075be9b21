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

    def is_reached(self, epoch: Mapping[str, Any]) -> bool:
        """Whether an epoch of the log has a low enough training loss and a high enough validation accuracy."""
        loss, accuracy = epoch.get("train_loss"), epoch.get("valid", {}).get("accuracy")
        is_low = not self.loss or (loss is not None and loss <= self.loss)
        return is_low and (not self.accuracy or (accuracy is not None and accuracy >= self.accuracy))

    def first(self, epochs: Sequence[Mapping[str, Any]]) -> dict[str, float]:
        """Epochs and seconds until the threshold; infinite if no epoch reaches it."""
        found = next((epoch for epoch in epochs if self.is_reached(epoch)), None)
        if found is None:
            return {"epochs_to_threshold": math.inf, "seconds_to_threshold": math.inf}
        return {"epochs_to_threshold": float(found["epoch"]), "seconds_to_threshold": float(found["seconds"])}


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
        accuracy = epochs[-1]["valid"].get("accuracy")
        last = {"valid_accuracy": float("nan") if accuracy is None else accuracy}
        return {**run, **self.threshold.first(epochs), **last}

    def _run(self, settings: TrainSettings, point: Point) -> tuple[list[dict[str, Any]], dict[str, float]]:
        """The events of a run, and its rates without warm-up steps."""
        hosts = self.hosts[: point.processes] if point.processes > 1 else ()
        with tempfile.TemporaryDirectory(prefix="tenor-bench-") as scratch:
            out = Path(scratch) / "run"
            train(self.inputs.data, out, settings, hosts=hosts)
            events = [json.loads(line) for line in (out / "metrics.jsonl").read_text("utf-8").splitlines()]
            return events, read_run(out)[0].rates()
