"""The measured runs of scenario `train`: Tenor, independent runs of Tenor, plain PyTorch, and matrix products."""

from __future__ import annotations

import tempfile
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path

from tenor.bench.peers.processes import run_together
from tenor.bench.scenarios.train.data import fixed_file
from tenor.bench.step_rates import read_run
from tenor.groups.meeting import loopback_interface
from tenor.store.manifest import Manifest
from tenor.training.launching.launch import train
from tenor.training.settings import TrainSettings

Outcome = tuple[dict[str, float], list[tuple[float, float]]]  # rates; (seconds, validation accuracy) after each epoch


def run_tenor(data: Path, training: TrainSettings, workers: int) -> Outcome:
    """Train with Tenor."""
    with tempfile.TemporaryDirectory(prefix="tenor-bench-") as scratch:
        train(data, Path(scratch) / "run", replace(training, workers=workers))
        steps, accuracies = read_run(Path(scratch) / "run")
    return steps.rates(), accuracies


def run_alone(data: Path, training: TrainSettings, workers: int) -> Outcome:
    """Run `workers` independent single-worker trainings at the same time; the rates are summed."""
    with ThreadPoolExecutor(workers) as pool:
        outcomes = list(pool.map(lambda _: run_tenor(data, training, 1), range(workers)))
    rates = {name: sum(rates[name] for rates, _ in outcomes) for name in outcomes[0][0]}
    return rates, outcomes[0][1]


def run_plain(data: Path, training: TrainSettings, workers: int) -> Outcome:
    """Train with plain PyTorch, in one process per worker."""
    names = ("embedding_dim", "hidden", "layers", "pooling", "batch_size", "optimizer", "lr", "momentum", "clip")
    fixed = fixed_file(data)
    with tempfile.TemporaryDirectory(prefix="tenor-bench-") as scratch:
        job = {
            **{name: getattr(training, name) for name in (*names, "epochs", "max_steps", "seed")},
            "vocab_size": Manifest.load(data).vocab_size,
            "data": str(data),
            "file": str(fixed) if fixed.exists() else "",
            "workers": workers,
            "interface": loopback_interface(),
            "meeting": f"{scratch}/meeting",
        }
        first = run_together("tenor.bench.peers.plain", [{**job, "rank": rank} for rank in range(workers)])[0]
    # Rank 0 counts only its own samples.
    rates = {name: first[name] * workers for name in ("samples_per_s", "tokens_per_s")}
    return rates, [(seconds, accuracy) for seconds, accuracy in first["accuracies"]]


def run_matmul(workers: int) -> Mapping[str, float]:
    """Multiply matrices in one process per worker; the rates are summed."""
    found = run_together("tenor.bench.peers.matmul", [{}] * workers)
    return {"gflops": sum(one["gflops"] for one in found)}
