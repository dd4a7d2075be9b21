"""Scenario `busy`: how much of their speed training and prediction keep while another process is busy.

Every row uses the default number of threads. The busy process computes without pause in one thread, so on two cores a
fair scheduler leaves two thirds of the time to Tenor. `kept` is the speed of a row divided by the speed on the quiet
machine. In the rows `-spinning`, on the quiet machine, threads wait as long as the OpenMP library does by default: a
value above 1 is the cost of the shorter spin that `tenor.threads` sets.
"""

from __future__ import annotations

import contextlib
import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from pathlib import Path

from tenor.bench.measuring import Contender, measure
from tenor.bench.results import Result
from tenor.bench.settings import BenchSettings
from tenor.corpus.synthetic.generate import generate
from tenor.corpus.synthetic.settings import GenerateSettings
from tenor.preparation.job.prepare import prepare
from tenor.progress import Progress
from tenor.training.launching.launch import train
from tenor.training.settings import TrainSettings

OPTIONS = ("workers", "rows")
STEPS = 100
NUM_ROWS = 20_000
Work = Callable[[], Mapping[str, float]]
DEFAULT_SPIN_COUNT = "300000"  # of the GNU OpenMP library, unless there are more threads than cores
BURN = "import os, sys\nwhile os.getppid() == int(sys.argv[1]): sum(range(100_000))"


def run(settings: BenchSettings, folder: Path, progress: Progress) -> Result:
    """Train and predict with each number of workers: on a quiet machine, with a busy process, and with long spins."""
    raw, data = folder / "reviews.jsonl", folder / "data"
    known = {}
    for count in settings.worker_counts():
        for name, work in (("train", partial(_train, data, count)), ("predict", partial(_predict, folder, raw, count))):
            for suffix, beside, how in CASES:
                facts = {"workers": count, "beside": beside}
                known[f"{name}-{count}{suffix}"] = Contender(f"{name}-{count}{suffix}", partial(how, work), facts)
    chosen = [known[name] for name in settings.chosen(known)]
    generate(raw, GenerateSettings(rows=NUM_ROWS))
    prepare([raw], data)
    train(data, folder / "run", TrainSettings(max_steps=STEPS, test=False))
    result = measure("busy", chosen, settings.repeats, settings.warmups, progress)
    speeds = {row["name"]: row["reviews_per_s"] for row in result.rows}
    for row in result.rows:
        quiet = speeds.get("-".join(row["name"].split("-")[:2]))
        row["kept"] = row["reviews_per_s"] / quiet if quiet else None
    return result


def _train(data: Path, workers: int) -> Mapping[str, float]:
    with tempfile.TemporaryDirectory(prefix="tenor-bench-") as scratch:
        short = TrainSettings(workers=workers, max_steps=STEPS, test=False)
        return {"reviews_per_s": float(train(data, Path(scratch) / "run", short).values["samples_per_s"])}


def _predict(folder: Path, raw: Path, workers: int) -> Mapping[str, float]:
    """Predict in a separate process, because the way threads wait is fixed when a process loads torch."""
    command = [sys.executable, "-m", "tenor", "predict", str(folder / "run"), str(raw), "--out", str(folder / "labels")]
    command += ["--workers", str(workers), "--json"]
    path = os.pathsep.join(filter(None, sys.path))
    ran = subprocess.run(command, env={**os.environ, "PYTHONPATH": path}, capture_output=True, check=True)
    return {"reviews_per_s": float(json.loads(ran.stdout)["reviews_per_s"])}


def _quiet(work: Work) -> Mapping[str, float]:
    return work()


def _beside_busy_process(work: Work) -> Mapping[str, float]:
    with _busy_process():
        return work()


def _with_long_spinning(work: Work) -> Mapping[str, float]:
    """Run the work with the default spin of the OpenMP library."""
    before = os.environ.get("GOMP_SPINCOUNT")
    os.environ["GOMP_SPINCOUNT"] = DEFAULT_SPIN_COUNT
    try:
        return work()
    finally:
        os.environ.pop("GOMP_SPINCOUNT")
        if before is not None:
            os.environ["GOMP_SPINCOUNT"] = before


@contextlib.contextmanager
def _busy_process() -> Iterator[None]:
    """Run one process that never waits. It also ends if this process is killed."""
    process = subprocess.Popen([sys.executable, "-c", BURN, str(os.getpid())])
    try:
        yield
    finally:
        process.kill()
        process.wait()


# suffix of the name of the row, text of the column `beside`, how the work is run
CASES = (
    ("", "nothing", _quiet),
    ("-busy", "a busy process", _beside_busy_process),
    ("-spinning", "nothing, long spinning", _with_long_spinning),
)
