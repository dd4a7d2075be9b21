"""The ledger: predictions are kept beside the runs that they are about, and compared with what the runs measured.

The file has one JSON object per line. A prediction belongs to a run if both have the same data, model, workers,
strategy, batch and shares, and if it was made before the run began. Of several, the latest counts.
"""

from __future__ import annotations

import errno
import os
import stat
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tenor.environment import describe
from tenor.errors import RunError, UsageError
from tenor.planning.inputs.measurement import Measurement
from tenor.planning.inputs.run_folder import measure_step
from tenor.planning.rows import PlanRow
from tenor.planning.settings import LOCAL_STRATEGIES, RING, PlanSettings
from tenor.store.strict import strict_json
from tenor.store.trusted import parse_json, read_bytes, read_json
from tenor.training.balancing.slowdown import parse_slowdown
from tenor.training.runs.config import read_config, read_settings
from tenor.training.traits import has_server, num_computing, strategy_name

NAME = "predictions.jsonl"
FORMAT = 1
MAX_BYTES = 256 << 20
LARGEST = 1e18  # figure of a prediction
MOST_BY_TOKENS = 4.0  # exponent with which a step grows with its tokens
_FIGURES = ("step_seconds", "low", "high", "tokens", "by_tokens", "bytes_per_step")
_NO_FIGURES = (KeyError, TypeError, ValueError, AttributeError, ArithmeticError)  # what values of a wrong kind raise
# The folder of a run may come from a stranger: a link is not followed, and a pipe does not block.
_APPEND = os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
# Settings that change what a step computes; a prediction holds for runs with the same values.
_MODEL = (
    "task",
    "model",
    "ngrams",
    "characters",
    "ngram_bits",
    "deep_length",
    "cell",
    "embedding_dim",
    "hidden",
    "layers",
    "bidirectional",
    "pooling",
    "optimizer",
    "precision",
    "accumulate",
    "compress",
)


@dataclass(frozen=True)
class Score:
    """A prediction beside what a run measured."""

    run: str
    workers: int
    strategy: str
    network: str
    predicted: float  # seconds of a step
    low: float
    high: float
    measured: float
    predicted_bytes: float
    measured_bytes: float

    @property
    def error(self) -> float:
        """How much larger the prediction is, relative to the measured value."""
        return self.predicted / self.measured - 1.0

    @property
    def is_inside(self) -> bool:
        return self.low <= self.measured <= self.high

    def as_dict(self) -> dict[str, Any]:
        return {**vars(self), "error": self.error, "inside": self.is_inside}


def ledger_file(source: str, settings: PlanSettings) -> Path:
    """The ledger of a plan: that of the settings, or the one beside the run or file that the plan is made from."""
    return Path(settings.ledger) if settings.ledger else Path(source).resolve().parent / NAME


def keep_predictions(file: Path, measured: Measurement, settings: PlanSettings, rows: Sequence[PlanRow]) -> int:
    """Append the predictions of a plan to its ledger; return how many."""
    date = describe()["date"]
    lines = []
    for row in rows:
        if row.step is None or row.parts is None:
            continue
        record = {
            "format": FORMAT,
            "date": date,
            "source": measured.source,
            "about": _about_plan(measured, settings, row),
            "network": settings.network,
            "step_seconds": row.step.value,
            "low": row.step.low,
            "high": row.step.high,
            "tokens": measured.tokens * (row.batch_size or measured.batch_size) / measured.batch_size,
            "by_tokens": row.parts.by_tokens,
            "bytes_per_step": row.parts.bytes_sent,
        }
        lines.append(strict_json(record) + "\n")
    with os.fdopen(os.open(file, _APPEND, 0o666), "a", encoding="utf-8") as stream:
        if not stat.S_ISREG(os.fstat(stream.fileno()).st_mode):
            raise OSError(errno.EINVAL, "it is not an ordinary file", str(file))
        stream.writelines(lines)
    return len(lines)


def _about_plan(measured: Measurement, settings: PlanSettings, row: PlanRow) -> dict[str, Any]:
    """What a prediction is about, in the form of `_about_run`."""
    slowness = settings.slowness() if row.workers > 1 else ()
    relative = [slowness[rank % len(slowness)] for rank in range(row.workers)] if slowness else []
    return {
        "data": measured.data_sha256,
        "model": _model(measured.settings or {}),
        "workers": row.workers,
        "threads": measured.threads,
        "strategy": row.strategy,
        "batch_size": row.batch_size,
        "sync_every": settings.sync_every if row.strategy in LOCAL_STRATEGIES else 0,
        "slowness": relative if set(relative) - {1.0} else [],
        "balanced": settings.balance,
        "hosts": row.hosts,
        **({"sums": settings.sums} if settings.sums != RING and row.hosts > 1 else {}),  # which no run tells of itself
    }


def _about_run(folder: Path) -> dict[str, Any]:
    config = read_config(folder)
    settings = read_settings(config, folder)
    environment = read_json(folder / "environment.json", 1 << 20, RunError)
    sizes = environment["sizes"]
    processes, per_host = int(sizes["processes"]), int(sizes["processes_per_host"])
    workers = num_computing(str(settings["strategy"]), processes)
    strategy = strategy_name(str(settings["strategy"]), processes)
    slowdown = parse_slowdown(str(settings.get("slowdown", "")))
    relative = [slowdown.factor(rank, 1) for rank in range(workers)]
    return {
        "data": str(config.get("data_sha256", "")),
        "model": _model(settings),
        "workers": workers,
        "threads": int(environment["threads"]),
        "strategy": strategy,
        "batch_size": int(settings["batch_size"]),
        "sync_every": int(settings["sync_every"]) if strategy in LOCAL_STRATEGIES else 0,
        "slowness": relative if set(relative) - {1.0} else [],
        "balanced": settings.get("balance", "off") != "off",
        "hosts": 1 if workers == 1 else -(-(processes - has_server(strategy, processes)) // per_host),
        "date": str(environment["date"]),
    }


def _model(settings: Mapping[str, Any]) -> dict[str, Any]:
    return {name: settings[name] for name in _MODEL if name in settings}


def score(folder: Path, ledger: Path | None = None) -> list[Score]:
    """Compare the predictions of a ledger with the runs in a folder.

    Args:
        folder: A folder of run folders, or one run folder.
        ledger: The ledger; by default the one in the folder.

    Raises:
        UsageError: There is no ledger, or it is damaged.
    """
    is_run = (folder / "config.json").exists()
    file = ledger or (folder.resolve().parent if is_run else folder) / NAME
    predictions = list(_read(file))
    found = []
    for run in [folder] if is_run else sorted(path for path in folder.iterdir() if (path / "config.json").exists()):
        try:
            about, step = _about_run(run), measure_step(run)
        except (RunError, *_NO_FIGURES, OSError):  # not a run of this version, or damaged
            continue
        date = about.pop("date")
        fitting = [one for one in predictions if one["about"] == about and one["date"] < date]
        if step is None or not fitting:
            continue
        last = fitting[-1]
        ratio = step.tokens / last["tokens"] if last["tokens"] and step.tokens else 1.0
        scale = ratio ** last["by_tokens"]  # the run may have seen longer reviews than the whole data has
        found.append(
            Score(
                run=run.name,
                workers=about["workers"],
                strategy=about["strategy"],
                network=str(last.get("network", "")),
                predicted=last["step_seconds"] * scale,
                low=last["low"] * scale,
                high=last["high"] * scale,
                measured=step.seconds,
                predicted_bytes=last["bytes_per_step"],
                measured_bytes=step.bytes_sent,
            )
        )
    return found


def _read(file: Path) -> Iterator[dict[str, Any]]:
    try:
        data = read_bytes(file, MAX_BYTES, UsageError)
    except FileNotFoundError as error:
        remedy = "make a prediction first, with `tenor plan RUN`, or name the file with --ledger"
        raise UsageError("there is no ledger of predictions", where=file, remedy=remedy) from error
    for number, line in enumerate(data.split(b"\n")[:-1], start=1):
        try:
            value = parse_json(line, file, UsageError)
            is_good = all(_is_figure(value[name]) for name in _FIGURES) and value["by_tokens"] <= MOST_BY_TOKENS
            is_good = is_good and value["format"] == FORMAT and isinstance(value["about"], dict)
            is_good = is_good and isinstance(value["date"], str)
        except (UsageError, KeyError):
            is_good = False
        if not is_good:
            what = f"line {number} is not a prediction of this version"
            raise UsageError(what, where=file, remedy="remove the line")
        yield value


def _is_figure(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and 0 <= value <= LARGEST
