"""Scenario `balance`: workers of different speeds, without balancing, balanced every epoch, and every few steps.

Slow workers are emulated (see training/balancing/slowdown.py). The ideal speed of a mix is the sum of the speeds of its
workers alone. Each worker trains alone in a separate run, with its slowdown, on batches as large as its share of a
batch after balancing by steps has settled. `share_of_ideal` is the speed of a mode divided by this sum; the steps in
which balancing settles count. In every run, the first step of each epoch is ignored, because it includes loading
libraries or follows validation. The ideal does not account for workers that share a core.

`times_off` is the speed of a mode divided by the speed without balancing. The speed of a shared machine varies by 10 %
within minutes. So the runs of a mix and of its single workers follow each other directly, with the single workers
before and after the run that is balanced by steps. Each turn starts one run later, so the first mix has its first runs
at the end of later turns. Both ratios are computed within each turn, and the row has their medians over the turns.
Speeds are in tokens per second, because batches hold rows of similar length and other batch sizes see other lengths.
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

from tenor.bench.measuring import Contender, measure, spread
from tenor.bench.models import LSTM
from tenor.bench.results import Result
from tenor.bench.settings import BenchSettings
from tenor.corpus.synthetic.generate import generate
from tenor.corpus.synthetic.settings import GenerateSettings
from tenor.preparation.job.prepare import prepare
from tenor.preparation.settings import PrepareSettings
from tenor.progress import Progress
from tenor.training.launching.launch import train

OPTIONS = ("rows",)
MODES = {"off": "off", "epoch": "epoch", "steps": "steps:3"}
MIXES = ("1:1", "1:2", "1:3", "2:2:6", "1:1→3")
TRAINING = replace(LSTM, threads=1, batch_size=512, epochs=100, dropout=0.0, input_dropout=0.0)
DATA = PrepareSettings(max_length=64, vocab_size=5000)
NUM_ROWS = 20_480  # 80 % are training rows: 32 batches per epoch, so that balancing every epoch can act several times
STEPS = 200  # so that the two or three steps of settling are about 1 %
STEPS_ALONE = 40  # per run of a single worker, and of the run that finds the shares

Slowness = tuple[float, ...]  # slowdown factor of each worker
Turns = list[float]  # speed in each turn
SlowWorker = tuple[float, int]  # slowdown factor, and rows of each batch
ResultRow = dict[str, Any]


@dataclass(frozen=True)
class Mix:
    """The slowdown factors of the workers in the first and in the second half of the run."""

    name: str
    before: Slowness
    after: Slowness

    @classmethod
    def parse(cls, name: str) -> Mix:
        """Parse `1:2`, or `1:1→3` for a second worker that becomes three times slower halfway through the run."""
        parts = [part.split("→") for part in name.split(":")]
        return cls(name, tuple(float(part[0]) for part in parts), tuple(float(part[-1]) for part in parts))

    def slowdown(self) -> str:
        """Return the value of `--slowdown` that emulates the mix."""
        spells = []
        for rank, (first, last) in enumerate(zip(self.before, self.after, strict=True)):
            spells += [f"{rank}:{first:g}@1-{STEPS // 2}"] if first > 1 else []
            spells += [f"{rank}:{last:g}@{STEPS // 2 + 1}-"] if last > 1 else []
        return ",".join(spells)


def run(settings: BenchSettings, folder: Path, progress: Progress) -> Result:
    """Generate and prepare reviews, find the shares of each mix, then measure all runs in turns."""
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
    measured: dict[str, list[ResultRow]] = {}
    for row in result.rows:
        measured.setdefault(row["name"], []).append(row)
    speeds = {name: _speeds(rows) for name, rows in measured.items()}
    rows = []
    for mix in mixes:
        halves = [[speeds[_name(mix, worker)] for worker in teams[slowness]] for slowness in (mix.before, mix.after)]
        rows += [_compared(measured[_name(mix, mode)][0], speeds[_name(mix, "off")], *halves) for mode in MODES]
    return replace(result, rows=rows)


def _speeds(rows: list[ResultRow]) -> Turns:
    """Return the tokens per second in each turn, as the mean over the given rows."""
    return [
        statistics.mean(turn) for turn in zip(*(row["spread"]["tokens_per_s"]["values"] for row in rows), strict=True)
    ]


def _compared(row: ResultRow, off: Turns, before: list[Turns], after: list[Turns]) -> ResultRow:
    """Return the row of a mode with its ratios to the ideal and to the run without balancing.

    Args:
        row: The measured row.
        off: Speeds of the mix without balancing.
        before: Speeds of the single workers with their slowdowns of the first half.
        after: The same for the second half.
    """
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
    """Return the ideal speed of a whole run; both halves train on the same number of tokens."""
    return 2.0 / (1.0 / before + 1.0 / after)


def _settled(data: Path, slowness: Slowness) -> list[SlowWorker]:
    """Return each worker with its rows of a batch after balancing has settled."""
    slowdown = ",".join(f"{rank}:{factor:g}" for rank, factor in enumerate(slowness))
    steps = _train(data, len(slowness), STEPS_ALONE, balance=MODES["steps"], slowdown=slowdown)
    columns = zip(*[step["shares"] for step in steps[len(steps) // 2 :]], strict=True)
    rows = [max(1, round(statistics.mean(column))) for column in columns]
    return list(zip(slowness, rows, strict=True))


def _name(mix: Mix, run: str | SlowWorker) -> str:
    """Return the name of a contender: a mix in a mode, or one worker of the mix alone."""
    return f"{mix.name} {run}" if isinstance(run, str) else f"{mix.name} alone: {run[0]:g} with {run[1]} rows"


def _together(data: Path, mix: Mix, balance: str) -> Mapping[str, float]:
    return _rates(_train(data, len(mix.before), STEPS, balance=balance, slowdown=mix.slowdown()))


def _alone(data: Path, worker: SlowWorker) -> Mapping[str, float]:
    slowness, rows = worker
    return _rates(_train(data, 1, STEPS_ALONE, batch_size=rows, slowdown=f"0:{slowness:g}"))


def _train(data: Path, workers: int, steps: int, **changes: Any) -> list[dict[str, Any]]:
    """Train for a few steps and return the logged step events."""
    with tempfile.TemporaryDirectory(prefix="tenor-bench-") as scratch:
        out = Path(scratch) / "run"
        train(data, out, replace(TRAINING, workers=workers, max_steps=steps, **changes))
        lines = (out / "metrics.jsonl").read_text("utf-8").splitlines()
    return [event for event in map(json.loads, lines) if event["event"] == "step"]


def _rates(steps: list[dict[str, Any]]) -> dict[str, float]:
    """Return samples and tokens per second without the first step of each epoch."""
    pairs = [(before, after) for before, after in pairwise(steps) if before["epoch"] == after["epoch"]]
    seconds = sum(after["seconds"] - before["seconds"] for before, after in pairs)
    return {f"{unit}_per_s": float(sum(after[unit] for _, after in pairs) / seconds) for unit in ("samples", "tokens")}
