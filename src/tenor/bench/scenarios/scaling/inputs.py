"""The files that a scaling experiment works on: reviews of each size, prepared data, and a model."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from tenor.bench.scaling_tables import WEAK
from tenor.bench.scenarios.scaling.points import Point
from tenor.corpus.synthetic.generate import generate
from tenor.corpus.synthetic.settings import GenerateSettings
from tenor.preparation.job.prepare import prepare
from tenor.progress import Progress
from tenor.training.launching.launch import train
from tenor.training.settings import NO_VECTORS, TrainSettings

MODEL_STEPS = 60  # of training for the model that predicts; its accuracy does not matter

PREPARED = 10  # times as many reviews are prepared as predicted, because preparing is that much faster


class Inputs:
    """Makes and finds the inputs of an experiment.

    Args:
        folder: Where the files are made.
        reviews: Reviews of one worker's work.
        data: Prepared data to train on; None prepares the generated reviews.
    """

    def __init__(self, folder: Path, reviews: int, data: Path | None) -> None:
        self.folder, self.reviews = folder, reviews
        self.data = data or folder / "data"
        self.is_made = data is None
        self.run = folder / "run"  # the model that predicts

    def make(self, points: Sequence[Point], progress: Progress) -> None:
        """Make what the points need."""
        for point in points:
            if point.stage in ("prepare", "predict") and not self.raw(point).exists():
                generate(self.raw(point), GenerateSettings(rows=self.num_reviews(point), seed=1), progress)
        stages = {point.stage for point in points}
        if stages & {"train", "predict"} and self.is_made:
            raw = self.folder / "train.jsonl"
            generate(raw, GenerateSettings(rows=self.reviews), progress)
            prepare([raw], self.data)
        if "predict" in stages:
            short = TrainSettings(workers=1, threads=1, max_steps=MODEL_STEPS, test=False, embeddings=NO_VECTORS)
            train(self.data, self.run, short)

    def num_reviews(self, point: Point) -> int:
        """The reviews of a point: for weak scaling, the same for every worker."""
        work = PREPARED if point.stage == "prepare" else 1
        return self.reviews * work * (point.workers if point.kind == WEAK else 1)

    def raw(self, point: Point) -> Path:
        """The file of reviews that a point prepares or predicts."""
        return self.folder / f"reviews-{self.num_reviews(point)}.jsonl"
