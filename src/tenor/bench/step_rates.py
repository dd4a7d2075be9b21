"""Computes training rates without the first steps of each epoch, in which memory is allocated and code is compiled."""

from __future__ import annotations

import json
import time
from dataclasses import dataclass, field
from pathlib import Path

WARM_UP = 0.1  # share of the steps of an epoch that is ignored, at least one step

Epoch = list[tuple[float, int, int]]  # per step: seconds at its end, samples, tokens


@dataclass
class Steps:
    """The steps of a run by epoch, recorded at the end of each step."""

    epochs: list[Epoch] = field(default_factory=list)
    began: float = field(default_factory=time.perf_counter)

    @property
    def count(self) -> int:
        return sum(len(epoch) for epoch in self.epochs)

    def now(self) -> float:
        return time.perf_counter() - self.began

    def begin_epoch(self) -> None:
        self.epochs.append([])

    def add(self, samples: int, tokens: int) -> None:
        self.epochs[-1].append((self.now(), samples, tokens))

    def rates(self) -> dict[str, float]:
        """Return samples and tokens per second after the warm-up steps."""
        seconds, samples, tokens = 0.0, 0, 0
        for epoch in self.epochs:
            first = max(1, round(WARM_UP * len(epoch)))
            seconds += epoch[-1][0] - epoch[first - 1][0]
            samples += sum(step[1] for step in epoch[first:])
            tokens += sum(step[2] for step in epoch[first:])
        return {"samples_per_s": samples / seconds, "tokens_per_s": tokens / seconds}


def read_run(run: Path) -> tuple[Steps, list[tuple[float, float]]]:
    """Return the steps of a run folder, and (seconds, validation accuracy) after each epoch."""
    steps, accuracies = Steps([[]]), []
    for line in (run / "metrics.jsonl").read_text("utf-8").splitlines():
        event = json.loads(line)
        if event["event"] == "step":
            steps.epochs[-1].append((event["seconds"], event["samples"], event["tokens"]))
        elif event["event"] == "epoch":
            accuracies.append((event["seconds"], event["valid"].get("accuracy", 0.0)))
            steps.begin_epoch()
    steps.epochs = [epoch for epoch in steps.epochs if len(epoch) > 1]
    return steps, accuracies
