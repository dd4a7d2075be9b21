"""Trains and measures one method with one seed. Work that several rows share is done once."""

from __future__ import annotations

import shutil
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from tenor.bench.peers.classifiers.reviews import read_reviews
from tenor.bench.peers.processes import run_together
from tenor.bench.scenarios.accuracy.reviews import SharedRows, share_rows
from tenor.bench.settings import BenchSettings
from tenor.corpus.labels import BINARY
from tenor.corpus.synthetic.generate import generate
from tenor.corpus.synthetic.settings import GenerateSettings
from tenor.environment import usable_cores
from tenor.evaluation.metrics import Metrics, measure
from tenor.evaluation.scores import Scores
from tenor.prediction.evaluate import evaluate
from tenor.preparation.job.prepare import prepare
from tenor.preparation.settings import PrepareSettings
from tenor.progress import Progress
from tenor.training.launching.launch import train
from tenor.training.settings import TrainSettings

PRESETS = ("fast", "default", "best")
MODULE = "tenor.bench.peers.classifiers.run"
TIMEOUT = 6 * 3600.0  # of one method with one seed
MEASURES = ("accuracy", "f1_macro", "auc", "calibration_error")
_WEIGHTS = ("model.safetensors", "vocab.json", "config.json")  # what a run needs to predict

Figures = dict[str, Any]


class Trials:
    """The trials of all methods, each run once per seed."""

    def __init__(self, settings: BenchSettings, folder: Path, progress: Progress) -> None:
        self.settings, self.folder, self.progress = settings, folder, progress
        self._rows: dict[int, SharedRows] = {}
        self._done: dict[tuple[str, int], Figures] = {}

    def figures(self, name: str, seed: int) -> Figures:
        """Train and measure a method with a seed, or return what it gave before."""
        if (name, seed) not in self._done:
            rows = self.rows(seed)
            found = self._preset(name, rows, seed) if name in PRESETS else self._peer(name, rows, seed)
            self.progress.say(f"{name}, seed {seed}: accuracy {found['accuracy']:.4f} in {found['seconds']:.1f} s")
            self._done[name, seed] = found
        return {key: value for key, value in self._done[name, seed].items() if key != "chosen"}

    def chosen(self, name: str) -> list[str]:
        """The settings that validation chose for a method, by seed."""
        return [found.get("chosen", "") for (method, _), found in sorted(self._done.items()) if method == name]

    def rows(self, seed: int) -> SharedRows:
        """The rows of a seed."""
        if seed not in self._rows:
            self._rows[seed] = share_rows(self.settings, seed, self.folder / f"seed-{seed}")
        return self._rows[seed]

    def _preset(self, name: str, rows: SharedRows, seed: int) -> Figures:
        run = self.folder / f"seed-{seed}" / name
        began = time.perf_counter()
        train(rows.data, run, TrainSettings(preset=name, seed=seed, test=False))
        seconds = time.perf_counter() - began  # with the start of the workers, and with word vectors
        metrics = evaluate(run, rows.data)
        speed = self._run_peer({"method": "tenor", "run": str(run), "folder": str(rows.texts)})
        size = sum((run / file).stat().st_size for file in _WEIGHTS)
        shutil.rmtree(run)
        return {
            **_measures(metrics),
            "seconds": seconds,
            "choice_seconds": 0.0,
            "prepare_seconds": rows.prepare_seconds,
            "size_mb": size / 1e6,
            **speed,
        }

    def _peer(self, name: str, rows: SharedRows, seed: int) -> Figures:
        out = self.folder / f"seed-{seed}" / f"{name}.npy"
        job = {"method": name, "folder": str(rows.texts), "out": str(out), "seed": seed, "threads": usable_cores()}
        budget = self.figures("default", seed)["seconds"] if name == "fasttext-autotune" else 0.0
        told = self._run_peer({**job, "budget": budget})
        scores = Scores()
        scores.add(np.load(out, allow_pickle=False), np.array(read_reviews(rows.texts / "test.jsonl").labels))
        return {**_measures(measure(scores, BINARY)), **told}

    def _run_peer(self, job: dict[str, Any]) -> Figures:
        return run_together(MODULE, [job], TIMEOUT)[0]


def warm_up(presets: Sequence[str], folder: Path) -> None:
    """Train each preset for two steps: compiling happens once per machine and is not part of the figures."""
    if not presets:
        return
    raw, data = folder / "warm.jsonl", folder / "warm"
    generate(raw, GenerateSettings(rows=400))
    prepare([raw], data, PrepareSettings(workers=1))
    for name in presets:
        train(data, folder / f"warm-{name}", TrainSettings(preset=name, max_steps=2, test=False))


def _measures(metrics: Metrics) -> Figures:
    return {name: getattr(metrics, name) for name in MEASURES}
