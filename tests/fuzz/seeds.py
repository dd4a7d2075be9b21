"""The valid inputs that the mutations start from: prepared data, a finished and a stopped run, a benchmark result."""

from __future__ import annotations

import json
import signal
from dataclasses import dataclass
from itertools import count
from pathlib import Path

from helpers.corpora import make_reviews, write_json_lines

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
    def bench(self) -> Path:
        return self.root / "scaling.json"

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
    _train(seeds, seeds.run, stop_after=10**9)
    check_behaviour(seeds.run)
    _train(seeds, seeds.stopped, stop_after=3)
    return seeds


def _train(seeds: Seeds, out: Path, stop_after: int) -> None:
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
    settings = TrainSettings(**asked_for, embeddings="none", cell="lstm", profile=stop_after > 3)  # type: ignore[arg-type]
    settings = complete(settings, DataFacts.of(Manifest.load(seeds.data)))
    job = TrainingJob(str(seeds.data), str(out), settings, resume=False)
    out.mkdir()
    with contextlib.suppress(Stopped):
        train_as(World(), job, lambda event: None, lambda: signal.SIGTERM if next(asked) >= stop_after else 0)


def _bench_result() -> dict[str, object]:
    rows = [
        {"name": f"{workers} workers", "workers": workers, "samples_per_s": 900.0 * workers**0.8, "repeats": 3}
        for workers in (1, 2, 4)
    ]
    return {"scenario": "scaling", "environment": {"machine": "a test"}, "rows": rows, "notes": ["made up"]}
