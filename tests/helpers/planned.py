"""Run folders and measurements with known costs, for plans whose numbers can be computed by hand."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np

from tenor import environment
from tenor.planning.costs.compute import CostLine
from tenor.planning.inputs.measurement import CurvePoint, Measurement, ModelSize, StepCosts, TableSize
from tenor.training.recipe import complete
from tenor.training.runs.config import FORMAT, stored_settings
from tenor.training.settings import TrainSettings

MACHINE = {"processor": "Test CPU", "cores": 2, "architecture": "x86_64", "memory_gib": 8.0, "system": "Linux"}
FIXED, PER_TOKEN = 0.002, 4e-6  # of computing
UPDATE = 0.001
ROWS = {"deep.embedding": 1200, "wide.ngrams": 9000}


def measurement(**changes: Any) -> Measurement:
    """A measurement of one worker on a machine of two cores: a batch of 5,000 tokens computes for 22 ms."""
    values: dict[str, Any] = {
        "source": "run",
        "environment": {"machine": MACHINE, "date": "2026-01-01T00:00:00Z", "versions": {}},
        "command": "tenor plan run",
        "strategy": "single",
        "workers": 1,
        "threads": 1,
        "cores": 2,
        "batch_size": 64,
        "reviews": 64_000,
        "epochs": 2,
        "tokens": 5000.0,
        "padding": 1.0,
        "costs": StepCosts(
            compute=CostLine(FIXED, PER_TOKEN, 0.001),
            update=CostLine(UPDATE, 0.0, 0.001),
            load=CostLine(0.0005, 0.0, 0.001),
            load_is_hidden=True,
            noise=(1.0,) * 20,
            exchange_s=None,
            exchange_workers=1,
            steps=1000,
        ),
        "model": ModelSize(400_000, {"words": TableSize(30_000, 400, 1000.0)}),
        "noise_scale": None,
        "curve": (CurvePoint(64_000, 0.8), CurvePoint(128_000, 0.85)),
        "settings": stored_settings(complete(TrainSettings(hidden=64), None)),
        "data_sha256": "ab" * 32,
    }
    return Measurement(**{**values, **changes})


def write_measured_run(folder: Path, workers: int = 1, steps: int = 120, date: str = "", **settings: Any) -> Path:
    """A run folder whose steps cost FIXED + PER_TOKEN × tokens, UPDATE and 3 ms of waiting with several workers."""
    folder.mkdir(parents=True)
    chosen = complete(TrainSettings(workers=workers, threads=1, epochs=1, **settings), None)
    config = {
        "format": FORMAT,
        "model": {"deep": {"vocab_size": 30_000, "length": 400}},
        "data_sha256": "ab" * 32,
        "settings": stored_settings(chosen),
    }
    tables = {"deep.embedding": {"rows": 30_000, "row_bytes": 400}, "wide.ngrams": {"rows": 1 << 20, "row_bytes": 4}}
    sizes = {"train_rows": 64 * steps, "dense_bytes": 400_000, "tables": tables}
    sizes |= {"processes": workers, "processes_per_host": workers}
    about = {**environment.describe(), "machine": MACHINE, "threads": 1, "sizes": sizes}
    about |= {"date": date} if date else {}
    _write(folder / "config.json", config)
    _write(folder / "environment.json", about)
    lines = [*_steps(workers, steps, chosen.batch_size), _epoch(steps)]
    (folder / "metrics.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines), "utf-8")
    return folder


def _steps(workers: int, steps: int, batch: int) -> Any:
    rng, seconds = np.random.default_rng(0), 0.0
    for step in range(1, steps + 1):
        tokens = int(rng.integers(1000, 9000))
        compute = [FIXED + PER_TOKEN * tokens / workers] * workers
        wait = 0.003 if workers > 1 else 0.0
        seconds += compute[0] + wait + UPDATE
        norms = {"gradient_norm": 1.0, "worker_gradient_norm": 1.1 + 0.2 * rng.random()} if workers > 1 else {}
        yield {
            "event": "step",
            "epoch": 1,
            "step": step,
            "seconds": seconds,
            "samples": batch,
            "tokens": tokens,
            "compute_seconds": compute,
            "wait_seconds": [wait] * workers if step > 1 else [0.0] * workers,
            "padded_tokens": [tokens / workers] * workers,
            "shares": [batch // workers] * workers,
            "rows": ROWS,
            "load_seconds": 0.0005,
            "bytes_sent": 800_000 if workers > 1 else 0,
            **norms,
        }


def _epoch(steps: int) -> dict[str, Any]:
    return {"event": "epoch", "epoch": 1, "step": steps, "seconds": 9.0, "train_loss": 0.4, "valid": {"accuracy": 0.8}}


def _write(file: Path, value: dict[str, Any]) -> None:
    file.write_text(json.dumps(value), "utf-8")
