"""Scenario `balance`: workers of mixed speeds, without balancing, balancing every epoch, and every few steps.

The slow workers are emulated (see training/slowdown.py). The ideal is the sum of what the workers reach alone: each
one trains in a run of its own, with its slowdown, on batches as large as the share it had at the end of the run that
was balanced by steps. `share_of_ideal` is a mode's samples a second over that sum. The runs of all mixes take turns,
those of the lone workers among them, so that a slow minute of the machine hits all alike.
"""

from __future__ import annotations

import json
import statistics
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

from tenor.bench.core import Contender, Result, measure
from tenor.bench.settings import BenchSettings
from tenor.corpus.generation import GenerateSettings
from tenor.corpus.synthetic import generate
from tenor.preparation.job import prepare
from tenor.preparation.settings import PrepareSettings
from tenor.progress import Progress
from tenor.training.launch import train
from tenor.training.settings import TrainSettings

MODES = {"off": "off", "epoch": "epoch", "steps": "steps:5"}
TRAINING = TrainSettings(threads=1, batch_size=256, hidden=64, embedding_dim=64, epochs=100, dropout=0.0)
EPOCH_ROWS = 8192  # 32 batches an epoch, so that balancing by epochs has its turns as well
STEPS = 160


@dataclass(frozen=True)
class Mix:
    """`slowness` of each worker at first, and in the second half of the run."""

    name: str
    before: tuple[float, ...]
    after: tuple[float, ...]

    @classmethod
    def parse(cls, name: str) -> Mix:
        """`1:2`, or `1:1→3` for a worker that slows threefold in the middle."""
        parts = [part.split("→") for part in name.split(":")]
        return cls(name, tuple(float(part[0]) for part in parts), tuple(float(part[-1]) for part in parts))

    def slowdown(self) -> str:
        """The option that emulates it."""
        spells = []
        for rank, (first, last) in enumerate(zip(self.before, self.after, strict=True)):
            spells += [f"{rank}:{first:g}@1-{STEPS // 2}"] if first > 1 else []
            spells += [f"{rank}:{last:g}@{STEPS // 2 + 1}-"] if last > 1 else []
        return ",".join(spells)


MIXES = tuple(Mix.parse(name) for name in ("1:1", "1:2", "1:3", "2:2:6", "1:1→3"))


def run(settings: BenchSettings, folder: Path, progress: Progress) -> Result:
    """Generate and prepare reviews, look which shares the balanced runs end with, then measure all in turns."""
    raw, data = folder / "reviews.jsonl", folder / "data"
    generate(raw, GenerateSettings(rows=EPOCH_ROWS * 10 // 8))
    prepare([raw], data, PrepareSettings(max_length=128))
    together = [
        Contender(f"{mix.name} {mode}", partial(_together, data, mix, balance), {"mix": mix.name, "mode": mode})
        for mix in MIXES
        for mode, balance in MODES.items()
    ]
    lone = {mix.name: _lone_workers(mix, _shares(data, mix)) for mix in MIXES}
    alone = [
        Contender(f"alone {rows} rows × {slowness:g}", partial(_alone, data, slowness, rows))
        for slowness, rows in sorted({worker for half in lone.values() for workers in half for worker in workers})
    ]
    result = measure("balance", [*together, *alone], settings.repeats, settings.warmups, progress)
    return _beside_ideal(result, lone, len(together))


Worker = tuple[float, int]  # how slow it is, and its rows of each batch


def _lone_workers(mix: Mix, shares: tuple[list[int], list[int]]) -> tuple[list[Worker], list[Worker]]:
    """The workers of the first and of the second half of a run."""
    return list(zip(mix.before, shares[0], strict=True)), list(zip(mix.after, shares[1], strict=True))


def _shares(data: Path, mix: Mix) -> tuple[list[int], list[int]]:
    """The rows each worker had, balanced by steps, at the end of the first and of the second half."""
    _, events = _train(data, len(mix.before), STEPS, balance=MODES["steps"], slowdown=mix.slowdown())
    ends = (STEPS // 2, STEPS)
    return tuple(_typical([e["shares"] for e in events if end - 16 < e["step"] <= end]) for end in ends)  # type: ignore[return-value]


def _typical(shares: list[list[int]]) -> list[int]:
    return [max(1, round(statistics.median(own))) for own in zip(*shares, strict=True)]


def _together(data: Path, mix: Mix, balance: str) -> Mapping[str, float]:
    values, _ = _train(data, len(mix.before), STEPS, balance=balance, slowdown=mix.slowdown())
    return {"samples_per_s": float(values["samples_per_s"])}


def _alone(data: Path, slowness: float, rows: int) -> Mapping[str, float]:
    """One worker on batches of its share's size; as many steps as half a run."""
    values, _ = _train(data, 1, STEPS // 2, batch_size=rows, slowdown=f"0:{slowness:g}")
    return {"samples_per_s": float(values["samples_per_s"])}


def _train(data: Path, workers: int, steps: int, **changes: Any) -> tuple[dict[str, Any], list[dict[str, Any]]]:
    """A short run: its result, and its steps."""
    with tempfile.TemporaryDirectory(prefix="tenor-bench-") as scratch:
        out = Path(scratch) / "run"
        values = train(data, out, replace(TRAINING, workers=str(workers), max_steps=steps, **changes)).values
        lines = (out / "metrics.jsonl").read_text("utf-8").splitlines()
    return values, [event for event in map(json.loads, lines) if event["event"] == "step"]


def _beside_ideal(result: Result, lone: dict[str, tuple[list[Worker], list[Worker]]], num_together: int) -> Result:
    """The rows of the mixes with their share of the ideal; the lone workers' rows go into it."""
    rates = {row["name"]: row["samples_per_s"] for row in result.rows[num_together:]}
    for row in result.rows[:num_together]:
        halves = [sum(rates[f"alone {rows} rows × {slow:g}"] for slow, rows in half) for half in lone[row["mix"]]]
        row["ideal_samples_per_s"] = 2.0 / (1.0 / halves[0] + 1.0 / halves[1])  # as many samples in either half
        row["share_of_ideal"] = row["samples_per_s"] / row["ideal_samples_per_s"]
    return replace(result, rows=result.rows[:num_together])
