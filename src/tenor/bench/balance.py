"""Scenario `balance`: workers of mixed speeds, without balancing, balancing every epoch, and every few steps.

The slow workers are emulated (see training/slowdown.py). The ideal is the sum of what the workers reach alone: each
one trains in a run of its own, with its slowdown, on batches as large as its share in a run that was balanced by
steps and has settled. `share_of_ideal` is a mode's speed over that sum, settling included; of every run the
first step of each epoch, in which libraries load or validation has just ended, is left out. More workers than cores
stand in line for them, which the ideal does not know of.

A shared machine wavers by a tenth within minutes. So the runs of a mix and of its lone workers follow each other, the
lone workers before and after the team that is balanced by steps (as each turn starts one run further, the first mix has
its first runs at the end of later turns); `share_of_ideal` and `times_off` (a mode's speed over
that without balancing) are formed within each turn, and their medians over the turns are given. Both go by tokens a
second: batches hold rows of like length, and runs with other batches meet other lengths.
"""

from __future__ import annotations

import json
import statistics
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import partial
from itertools import pairwise
from pathlib import Path
from typing import Any

from tenor.bench.core import Contender, Result, measure, spread
from tenor.bench.settings import BenchSettings
from tenor.corpus.generation import GenerateSettings
from tenor.corpus.synthetic import generate
from tenor.preparation.job import prepare
from tenor.preparation.settings import PrepareSettings
from tenor.progress import Progress
from tenor.training.launch import train
from tenor.training.settings import TrainSettings

MODES = {"off": "off", "epoch": "epoch", "steps": "steps:3"}
MIXES = ("1:1", "1:2", "1:3", "2:2:6", "1:1→3")
TRAINING = TrainSettings(threads=1, batch_size=512, epochs=100, dropout=0.0)
DATA = PrepareSettings(max_length=64, vocab_size=5000)
NUM_ROWS = 20_480  # eight tenths are trained on: 32 batches an epoch, so that balancing by epochs has its turns
STEPS = 200  # enough that the two or three of settling are a hundredth of them
STEPS_ALONE = 40  # of each of the two runs; also of the run that shows which shares come about

Slowness = tuple[float, ...]  # of each worker
Turns = list[float]  # a speed in every turn
Worker = tuple[float, int]  # how slow it is, and its rows of each batch
Row = dict[str, Any]  # of a result


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


def run(settings: BenchSettings, folder: Path, progress: Progress) -> Result:
    """Generate and prepare reviews, look which shares come about, then measure all in turns."""
    mixes = [Mix.parse(name) for name in settings.chosen(MIXES)]
    raw, data = folder / "reviews.jsonl", folder / "data"
    generate(raw, GenerateSettings(rows=NUM_ROWS))
    prepare([raw], data, DATA)
    slownesses = dict.fromkeys(slowness for mix in mixes for slowness in (mix.before, mix.after))
    teams = {slowness: _settled(data, slowness) for slowness in slownesses}
    contenders = []
    for mix in mixes:
        workers = sorted({*teams[mix.before], *teams[mix.after]})
        alone = [Contender(_name(mix, worker), partial(_alone, data, worker)) for worker in workers]
        epoch, steps, off = (
            Contender(_name(mix, mode), partial(_together, data, mix, MODES[mode]), {"mix": mix.name, "mode": mode})
            for mode in ("epoch", "steps", "off")
        )
        contenders += [epoch, *alone, steps, *alone, off]
    result = measure("balance", contenders, settings.repeats, settings.warmups, progress)
    measured: dict[str, list[Row]] = {}
    for row in result.rows:
        measured.setdefault(row["name"], []).append(row)
    speeds = {name: _speeds(rows) for name, rows in measured.items()}
    rows = []
    for mix in mixes:
        halves = [[speeds[_name(mix, worker)] for worker in teams[slowness]] for slowness in (mix.before, mix.after)]
        rows += [_compared(measured[_name(mix, mode)][0], speeds[_name(mix, "off")], *halves) for mode in MODES]
    return replace(result, rows=rows)


def _speeds(rows: list[Row]) -> Turns:
    """Tokens a second in every turn, the mean over the runs of one name."""
    return [
        statistics.mean(turn) for turn in zip(*(row["spread"]["tokens_per_s"]["values"] for row in rows), strict=True)
    ]


def _compared(row: Row, off: Turns, before: list[Turns], after: list[Turns]) -> Row:
    """A mode's row beside the mix without balancing and its workers alone in either half of the run, turn by turn."""
    sums = [[sum(turn) for turn in zip(*team, strict=True)] for team in (before, after)]
    ideals = [_ideal(*turn) for turn in zip(*sums, strict=True)]
    figures = {
        "share_of_ideal": [speed / ideal for speed, ideal in zip(_speeds([row]), ideals, strict=True)],
        "times_off": [speed / other for speed, other in zip(_speeds([row]), off, strict=True)],
    }
    alone = [[round(statistics.median(worker)) for worker in team] for team in (before, after)]
    return {
        **row,
        **{name: statistics.median(values) for name, values in figures.items()},
        "spread": row["spread"] | {name: spread(values) for name, values in figures.items()},
        "alone_tokens_per_s": alone[0] if before == after else alone,
    }


def _ideal(before: float, after: float) -> float:
    """Of a whole run: as much is trained on in either half of it."""
    return 2.0 / (1.0 / before + 1.0 / after)


def _settled(data: Path, slowness: Slowness) -> list[Worker]:
    """The workers with the rows each has of a batch once balancing has settled."""
    slowdown = ",".join(f"{rank}:{factor:g}" for rank, factor in enumerate(slowness))
    steps = _train(data, len(slowness), STEPS_ALONE, balance=MODES["steps"], slowdown=slowdown)
    columns = zip(*[step["shares"] for step in steps[len(steps) // 2 :]], strict=True)
    rows = [max(1, round(statistics.mean(column))) for column in columns]
    return list(zip(slowness, rows, strict=True))


def _name(mix: Mix, who: str | Worker) -> str:
    """Of a mix in a mode, or of one of its workers alone."""
    return f"{mix.name} {who}" if isinstance(who, str) else f"{mix.name} alone: {who[0]:g} with {who[1]} rows"


def _together(data: Path, mix: Mix, balance: str) -> Mapping[str, float]:
    return _rates(_train(data, len(mix.before), STEPS, balance=balance, slowdown=mix.slowdown()))


def _alone(data: Path, worker: Worker) -> Mapping[str, float]:
    slowness, rows = worker
    return _rates(_train(data, 1, STEPS_ALONE, batch_size=rows, slowdown=f"0:{slowness:g}"))


def _train(data: Path, workers: int, steps: int, **changes: Any) -> list[dict[str, Any]]:
    """The steps of a short run."""
    with tempfile.TemporaryDirectory(prefix="tenor-bench-") as scratch:
        out = Path(scratch) / "run"
        train(data, out, replace(TRAINING, workers=str(workers), max_steps=steps, **changes))
        lines = (out / "metrics.jsonl").read_text("utf-8").splitlines()
    return [event for event in map(json.loads, lines) if event["event"] == "step"]


def _rates(steps: list[dict[str, Any]]) -> dict[str, float]:
    """Samples and tokens a second, but for the first step of each epoch."""
    pairs = [(before, after) for before, after in pairwise(steps) if before["epoch"] == after["epoch"]]
    seconds = sum(after["seconds"] - before["seconds"] for before, after in pairs)
    return {f"{what}_per_s": float(sum(after[what] for _, after in pairs) / seconds) for what in ("samples", "tokens")}
