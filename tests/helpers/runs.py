"""Write a run folder with made-up but plausible numbers, in the layout of `tenor train`."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

import numpy as np

from tenor import environment
from tenor.evaluation.metrics import measure
from tenor.evaluation.scores import Scores
from tenor.training.runs.config import FORMAT
from tenor.training.runs.row_scores import write_row_scores


def write_run(
    folder: Path,
    epochs: int = 4,
    steps: int = 30,
    workers: int = 2,
    classes: tuple[str, ...] = ("negative", "positive"),
    settings: dict[str, Any] | None = None,
) -> Path:
    """Write config, environment, metrics and result, with falling losses and rising accuracies."""
    folder.mkdir(parents=True, exist_ok=True)
    events = list(_events(epochs, steps, workers, classes))
    rate = {"samples_per_s": 1450.2, "tokens_per_s": 251_000.0}
    result = {
        "steps": epochs * steps,
        "train_rows": 25_000,
        "vector_seconds": 12.5,
        "epochs": epochs,
        "seconds": events[-1]["seconds"],
        **rate,
        "valid": events[-1]["valid"],
        "test": _metrics(0.86, classes, 6000, seed=99),
        "weights_sha256": "5f" * 32,
        "workers": workers,
    }
    config = {
        "format": FORMAT,
        "model": {"deep": {"cell": "lstm", "embedding_dim": 64, "hidden": 64, "vocab_size": 20_002}},
        "training": {"batch_size": 256, "epochs": epochs, "lr": 0.002, "strategy": "allreduce", "seed": 0},
        "classes": list(classes),
        "data_sha256": "c0ffee" * 10,
        "tokeniser": {"lower": True},
        "max_length": 256,
        **({"settings": settings} if settings is not None else {}),
    }
    _write(folder / "config.json", config)
    _write(folder / "environment.json", environment.describe())
    _write(folder / "result.json", result)
    lines = [*events, {"event": "end", **result}]
    (folder / "metrics.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines), "utf-8")
    return folder


def store_scores(folder: Path, probabilities: Any, labels: Any) -> None:
    """Write the scores of the test rows into a run folder."""
    scores = Scores()
    scores.add(np.asarray(probabilities, np.float32), np.asarray(labels))
    write_row_scores(folder, scores)


def _events(epochs: int, steps: int, workers: int, classes: tuple[str, ...]) -> Any:
    rng = np.random.default_rng(0)
    for step in range(1, epochs * steps + 1):
        epoch = (step - 1) // steps + 1
        loss = 0.25 + 0.44 * math.exp(-2 * step / steps) + float(rng.normal(0, 0.02))
        compute = [0.16 + 0.02 * rank for rank in range(workers)]
        yield {
            "event": "step",
            "epoch": epoch,
            "step": step,
            "loss": loss,
            "lr": 0.002,
            "samples": 256,
            "tokens": 40_000,
            "seconds": 0.18 * step,
            "compute_seconds": compute,
            "wait_seconds": [max(compute) - own + 0.01 for own in compute],
            "bytes_sent": 5_000_000,
            "shares": [256 // workers] * workers,
        }
        if step % steps == 0:
            valid = _metrics(0.88 - 0.3 * math.exp(-epoch), classes, 2000, seed=epoch)
            rates = {"samples_per_s": 1450.0, "tokens_per_s": 250_000.0}
            mean = 0.25 + 0.4 * math.exp(-1.6 * epoch)
            yield {
                "event": "epoch",
                "epoch": epoch,
                "step": step,
                "seconds": 0.18 * step,
                "train_loss": mean,
                "valid": valid,
                **rates,
            }


def _metrics(accuracy: float, classes: tuple[str, ...], rows: int, seed: int) -> dict[str, Any]:
    """Measure made-up predictions of which about the share `accuracy` is right."""
    rng = np.random.default_rng(seed)
    labels = (rng.random(rows) < 0.6).astype(int) if len(classes) == 2 else rng.integers(0, len(classes), rows)
    right = rng.random(rows) < accuracy
    scores = Scores()
    if len(classes) == 2:
        sure = 0.5 + 0.5 * rng.random(rows) ** 0.7
        scores.add(np.where(right == (labels == 1), sure, 1 - sure), labels)
    else:
        chances = rng.random((rows, len(classes)))
        chances[np.arange(rows), np.where(right, labels, (labels + 1) % len(classes))] += 1
        scores.add(chances / chances.sum(1, keepdims=True), labels)
    return measure(scores, classes).as_dict()


def _write(file: Path, value: dict[str, Any]) -> None:
    file.write_text(json.dumps(value, indent=1) + "\n", "utf-8")
