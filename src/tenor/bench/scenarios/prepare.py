"""Scenario `prepare`: compares Tenor with other tools that prepare the same file.

The work is to clean the text, count words, keep the 30,000 most frequent ones, and write word ids.

Every contender runs in a separate process. `startup_s` is the time before the work begins (imports, compilation, worker
processes). `cpu_s` is the processor time of the work, which depends little on other load. `wc -w` only counts words,
and its rate is the target. Slow contenders read only the beginning of the file.
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

from tenor.bench.measuring import Contender, measure
from tenor.bench.results import Result
from tenor.bench.settings import BenchSettings
from tenor.corpus.synthetic.generate import generate
from tenor.corpus.synthetic.settings import GenerateSettings
from tenor.errors import WorkerError
from tenor.progress import Progress

OPTIONS = ("workers", "rows", "megabytes")
_BYTES_PER_ROW = 470  # of the generated corpus, on average
_MOST_MEGABYTES = {"pandas": 50, "dask": 50}  # read by slow contenders
_NEEDS = {"pandas": "pandas", "dask": "dask.dataframe", "polars": "polars"}

Stages = dict[str, list[dict[str, float]]]  # contender → for each run, the seconds of each stage


def run(settings: BenchSettings, folder: Path, progress: Progress) -> Result:
    """Generate the file once, then run every contender on it in turns."""
    names = [f"tenor-{workers}" for workers in settings.worker_counts()]
    names += [name for name, module in _NEEDS.items() if _present(module)] + ["wc"]
    names = settings.chosen(names)
    raw = folder / "reviews.jsonl"
    generate(raw, GenerateSettings(rows=max(2000, settings.megabytes * 1_000_000 // _BYTES_PER_ROW), seed=1), progress)
    stages: Stages = defaultdict(list)
    contenders = [_contender(name, raw, folder, stages) for name in names]
    result = measure("prepare", contenders, settings.repeats, settings.warmups, progress)
    rate_of_wc = next((row["mb_per_s"] for row in result.rows if row["name"] == "wc"), None)
    for row in result.rows:
        row["of_wc"] = row["mb_per_s"] / rate_of_wc if rate_of_wc else None
        if found := stages[row["name"]]:
            result.notes.append(
                f"Time of {row['name']} by stage: {time_by_stage(found[-settings.repeats :], row['seconds'])}."
            )
    return result


def time_by_stage(runs: Sequence[Mapping[str, float]], seconds: float) -> str:
    """Return the median time of each stage as a share of `seconds`, largest first."""
    shares = {name: statistics.median(run[name] for run in runs) / seconds for name in runs[0]}
    shares["between stages"] = max(0.0, 1.0 - sum(shares.values()))
    return ", ".join(f"{name} {share:.0%}" for name, share in sorted(shares.items(), key=lambda item: -item[1]))


def _present(module: str) -> bool:
    try:
        return importlib.util.find_spec(module) is not None
    except ModuleNotFoundError:
        return False


def _contender(name: str, raw: Path, folder: Path, stages: Stages) -> Contender:
    kind = name.split("-", maxsplit=1)[0]
    size = raw.stat().st_size
    most = min(size, _MOST_MEGABYTES[kind] * 1_000_000) if kind in _MOST_MEGABYTES else size
    source = raw if most == size else _beginning(raw, folder / f"first-{most}.jsonl", most)
    megabytes = source.stat().st_size / 1e6
    measured = partial(_measure, name, source, folder / "out", megabytes, stages)
    return Contender(name, measured, {"megabytes": megabytes})


def _beginning(raw: Path, to: Path, size: int) -> Path:
    """Copy the whole lines in the first `size` bytes of the file."""
    if not to.exists():
        with raw.open("rb") as file:
            data = file.read(size)
        to.write_bytes(data[: data.rfind(b"\n") + 1])
    return to


def _measure(name: str, source: Path, out: Path, megabytes: float, stages: Stages) -> Mapping[str, float]:
    """Run one contender in a separate process, which prints the seconds of its start, its work and its stages."""
    done = subprocess.run(
        [sys.executable, "-m", "tenor.bench.peers.prepare", name, str(source), str(out)],
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path), "PYTHONWARNINGS": "ignore"},
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode != 0:
        raise WorkerError(
            f"contender {name} failed with exit code {done.returncode}: {done.stderr[-500:].strip()}",
            remedy="correct the cause, or choose other contenders with --rows",
        )
    figures = json.loads(done.stdout.strip().splitlines()[-1])
    if seconds_by_stage := figures.pop("stages"):
        stages[name].append(seconds_by_stage)
    return {"mb_per_s": megabytes / figures["seconds"], **figures}
