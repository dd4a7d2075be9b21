"""Scenario `prepare`: the same file, the same work (clean, count, top 30,000 words, ids, write), ours beside others.

Every contender is a process of its own; what it needs before it can start (imports, compilation, worker processes) is
`startup_s`, apart from the work; `cpu_s` is the processor time of the work, which a busy machine does not change much.
`wc -w` only counts words: it is the line to aim at. Slow contenders take a slice.
"""

from __future__ import annotations

import importlib.util
import json
import os
import statistics
import subprocess
import sys
from collections import defaultdict
from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path

from tenor.bench.core import Contender, Result, measure
from tenor.bench.settings import BenchSettings
from tenor.corpus.generation import GenerateSettings
from tenor.corpus.synthetic import generate
from tenor.errors import WorkerError
from tenor.progress import Progress

_BYTES_A_ROW = 470  # of the generated corpus, about
_SLICES = {"pandas": 50, "dask": 50}  # megabytes
_NEEDS = {"pandas": "pandas", "dask": "dask.dataframe", "polars": "polars"}

Stages = dict[str, list[dict[str, float]]]  # of each contender that tells: seconds by stage, run by run


def run(settings: BenchSettings, folder: Path, progress: Progress) -> Result:
    """Generate the file once, then run every contender over it in turns."""
    names = [f"tenor-{workers}" for workers in settings.worker_counts()]
    names += [name for name, module in _NEEDS.items() if _present(module)] + ["wc"]
    names = settings.chosen(names)
    raw = folder / "reviews.jsonl"
    generate(raw, GenerateSettings(rows=max(2000, settings.megabytes * 1_000_000 // _BYTES_A_ROW), seed=1), progress)
    stages: Stages = defaultdict(list)
    contenders = [_contender(name, raw, folder, stages) for name in names]
    result = measure("prepare", contenders, settings.repeats, settings.warmups, progress)
    words = next((row["mb_per_s"] for row in result.rows if row["name"] == "wc"), None)
    for row in result.rows:
        row["of_wc"] = row["mb_per_s"] / words if words else None
        if found := stages[row["name"]]:
            result.notes.append(
                f"{row['name']} spends its time on {spent(found[-settings.repeats :], row['seconds'])}."
            )
    return result


def spent(found: Sequence[Mapping[str, float]], seconds: float) -> str:
    """The medians of the stages as shares of the whole, the largest first."""
    shares = {name: statistics.median(run[name] for run in found) / seconds for name in found[0]}
    shares["what lies between"] = max(0.0, 1.0 - sum(shares.values()))
    return ", ".join(f"{name} {share:.0%}" for name, share in sorted(shares.items(), key=lambda item: -item[1]))


def _present(module: str) -> bool:
    try:
        return importlib.util.find_spec(module) is not None
    except ModuleNotFoundError:
        return False


def _contender(name: str, raw: Path, folder: Path, stages: Stages) -> Contender:
    kind = name.split("-", maxsplit=1)[0]
    size = raw.stat().st_size
    part = min(size, _SLICES[kind] * 1_000_000) if kind in _SLICES else size
    source = raw if part == size else _slice(raw, folder / f"slice-{part}.jsonl", part)
    megabytes = source.stat().st_size / 1e6
    measured = partial(_measure, name, source, folder / "out", megabytes, stages)
    return Contender(name, measured, {"megabytes": megabytes})


def _slice(raw: Path, to: Path, size: int) -> Path:
    """The first whole lines of the file."""
    if not to.exists():
        with raw.open("rb") as file:
            data = file.read(size)
        to.write_bytes(data[: data.rfind(b"\n") + 1])
    return to


def _measure(name: str, source: Path, out: Path, megabytes: float, stages: Stages) -> Mapping[str, float]:
    """Run one contender in its own process; it says how long its start, its work and the stages of that took."""
    done = subprocess.run(
        [sys.executable, "-m", "tenor.bench.prepare_peers", name, str(source), str(out)],
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path), "PYTHONWARNINGS": "ignore"},
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode != 0:
        raise WorkerError(f"{name} failed: {done.stderr[-500:]}", remedy="run it alone with --rows to see more")
    figures = json.loads(done.stdout.strip().splitlines()[-1])
    if told := figures.pop("stages"):
        stages[name].append(told)
    return {"mb_per_s": megabytes / figures["seconds"], **figures}
