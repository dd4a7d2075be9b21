"""The valid inputs that the mutations start from: prepared data, a finished and a stopped run, a benchmark result."""

from __future__ import annotations

import json
import shutil
import signal
from dataclasses import dataclass
from itertools import count
from pathlib import Path
from typing import Any

from helpers.corpora import make_reviews, write_json_lines
from helpers.processes import TESTS

TINY = ("--hidden", "4", "--embedding-dim", "4", "--batch-size", "16", "--threads", "1", "--epochs", "1")


@dataclass(frozen=True)
class Seeds:
    """The paths of the valid inputs, which nothing changes after they are made."""

    root: Path

    @property
    def data(self) -> Path:
        return self.root / "data"

    @property
    def run(self) -> Path:
        return self.root / "run"

    @property
    def stopped(self) -> Path:
        """A run that was stopped within its first epoch, so that it has a checkpoint."""
        return self.root / "stopped"

    @property
    def conv(self) -> Path:
        """A finished run of a convolution, which can be exported."""
        return self.root / "conv"

    @property
    def bench(self) -> Path:
        return self.root / "scaling.json"

    @property
    def results(self) -> Path:
        """A folder of benchmark results that come with the project."""
        return self.root / "results"

    @property
    def vectors(self) -> Path:
        """Word vectors, as a folder and in files of other programs."""
        return self.root / "vectors"

    @property
    def plans(self) -> Path:
        """What `tenor plan` reads, and settings for `tenor train`."""
        return self.root / "plans"

    @property
    def reviews(self) -> Path:
        """A few texts, one per line."""
        return self.root / "texts.txt"


def make_seeds(root: Path) -> Seeds:
    """Make the folders with Tenor itself, in this process."""
    from tenor.prediction.behaviour import check_behaviour
    from tenor.preparation.job.prepare import prepare
    from tenor.preparation.settings import PrepareSettings

    seeds = Seeds(root)
    raw = write_json_lines(root / "raw.jsonl", make_reviews(90, seed=5, words=8))
    prepare([raw], seeds.data, PrepareSettings(workers=1, valid_share=0.15, test_share=0.15))
    texts = [review.text for review in make_reviews(5, seed=6)]
    seeds.reviews.write_text("\n".join(texts) + "\n", "utf-8")
    seeds.bench.write_text(json.dumps(_bench_result()), "utf-8")
    _make_vectors(seeds)
    _make_plans(seeds)
    seeds.results.mkdir()
    for result in (TESTS.parent / "benchmarks").glob("*.json"):
        shutil.copy(result, seeds.results)
    _train(seeds, seeds.run, stop_after=10**9)
    check_behaviour(seeds.run)
    _train(seeds, seeds.stopped, stop_after=3)
    _train(seeds, seeds.conv, stop_after=10**9, cell="conv", pooling="max", layers=1)
    return seeds


def _train(seeds: Seeds, out: Path, stop_after: int, **more: Any) -> None:
    """Train as the only rank; a simulated SIGTERM arrives after `stop_after` checks for signals."""
    import contextlib

    from tenor.errors import Stopped
    from tenor.store.manifest import Manifest
    from tenor.training.assemble import train_as
    from tenor.training.job import TrainingJob
    from tenor.training.recipe import DataFacts, complete
    from tenor.training.settings import TrainSettings
    from tenor.world import World

    asked = count()
    asked_for = {"hidden": 4, "embedding_dim": 4, "batch_size": 16, "threads": 1, "epochs": 1, "workers": "1"}
    others = {"embeddings": "none", "cell": "lstm", "profile": stop_after > 3, **more}
    settings = TrainSettings(**asked_for, **others)  # type: ignore[arg-type]
    settings = complete(settings, DataFacts.of(Manifest.load(seeds.data)))
    job = TrainingJob(str(seeds.data), str(out), settings, resume=False)
    out.mkdir()
    with contextlib.suppress(Stopped):
        train_as(World(), job, lambda event: None, lambda: signal.SIGTERM if next(asked) >= stop_after else 0)


def _make_vectors(seeds: Seeds) -> None:
    import numpy as np
    from fuzz.hostile_files import write_exchanged

    from tenor.embedding.subwords import Shape
    from tenor.embedding.vectors import Subwords, Vectors, save_vectors
    from tenor.preparation.tokeniser.vocabulary import Vocabulary

    words = tuple(Vocabulary.load(seeds.data / "vocab.json").words)
    rng = np.random.default_rng(0)
    matrix = rng.normal(size=(len(words), 4)).astype(np.float32)
    subwords = Subwords(Shape(3, 6, 50), rng.normal(size=(50, 4)).astype(np.float32))
    settings = {"model": "skipgram", "window": 5, "negative": 15, "epochs": 1, "seed": 0}
    seeds.vectors.mkdir()
    save_vectors(seeds.vectors, Vectors(words, matrix, subwords), settings, {"words": 99, "loss": 0.5})
    write_exchanged(seeds.vectors, words, matrix.tolist())


def _make_plans(seeds: Seeds) -> None:
    from importlib import resources

    from helpers.planned import measurement, write_measured_run

    from tenor.planning.answers import plan_measurement, read_source
    from tenor.planning.inputs.measurement import write_measurement
    from tenor.planning.ledger import keep_predictions
    from tenor.planning.settings import PlanSettings
    from tenor.store.manifest import Manifest

    folder = seeds.plans
    write_measured_run(folder / "run", workers=2, steps=40, date="2099-01-01T00:00:00Z")
    write_measurement(measurement(), folder / "measurement.json")
    shutil.copytree(seeds.data, folder / "data")
    manifest = Manifest.load(seeds.data)
    config = json.loads((folder / "run" / "config.json").read_bytes())
    config |= {
        "data_sha256": manifest.sha256,
        "model": {"deep": {"vocab_size": manifest.vocab_size, "length": 400}},
    }
    (folder / "run" / "config.json").write_text(json.dumps(config), "utf-8")
    runs = [{"machine": "p2.xlarge", "count": count, "seconds": 9000 / count**0.9, "name": "a"} for count in (1, 2, 4)]
    (folder / "runs.json").write_text(json.dumps({"runs": runs}), "utf-8")
    shutil.copy(TESTS / "planning" / "course_runs.csv", folder / "runs.csv")
    prices = resources.files("tenor.planning.inputs").joinpath("prices.toml").read_text("utf-8")
    (folder / "prices.toml").write_text(prices + "\n[x]\ndollars_per_hour = 1.0\ncores = 2\n", "utf-8")
    (folder / "train.toml").write_text('epochs = 1\nlr = 0.01\nmodel = "deep"\n', "utf-8")
    settings = PlanSettings(workers="1,2")
    measured = read_source(folder / "run", settings)
    keep_predictions(folder / "predictions.jsonl", measured, settings, plan_measurement(measured, settings).rows)


def _bench_result() -> dict[str, object]:
    rows = [
        {"name": f"{workers} workers", "workers": workers, "samples_per_s": 900.0 * workers**0.8, "repeats": 3}
        for workers in (1, 2, 4)
    ]
    return {"scenario": "scaling", "environment": {"machine": "a test"}, "rows": rows, "notes": ["made up"]}
